"""A profile of PyTorch beside that of the device; prints the launches of kernels in both.

profiled.py FILE writes the Chrome trace to FILE.
"""

import json
import sys
from pathlib import Path

import torch
from torch import nn
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, schedule

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU()).to("ahbm")
x = torch.randn(512, 64).to("ahbm")
model(x)
torch.ahbm.synchronize()


def launches(profiled: profile) -> list:
    return [each for each in profiled.events() if each.device_type == DeviceType.PrivateUse1]


with torch.ahbm.profile() as own, profile(record_shapes=True) as profiled:
    model(x)
kernels = [each for each in own.records if each.engine == "pe_cpu"]
for name in ("matmul", "relu"):
    parts = [each for each in kernels if each.name == f"kernel {name}"]
    assert len(parts) > 1, "on several PEs"
    elapsed_ps = max(each.end_ps for each in parts) - min(each.start_ps for each in parts)
    print(f"= expected {name} {elapsed_ps / 1e6:.6f}")
for each in launches(profiled):
    print(f"= event {each.name} {each.time_range.elapsed_us():.6f}")
for each in profiled.key_averages():
    if each.device_type == DeviceType.PrivateUse1:
        print(f"= average {each.key} {each.self_device_time_total:.6f}")
assert "Self AHBM" in profiled.key_averages().table()
profiled.export_chrome_trace(sys.argv[1])
for each in json.loads(Path(sys.argv[1]).read_text("utf-8"))["traceEvents"]:
    if each.get("cat") == "kernel":
        assert each["pid"] == "ahbm:0 in simulated time"
        print(f"= trace {each['name']} {each['dur']:.6f}")
with profile(activities=[ProfilerActivity.CPU]) as of_host:
    model(x)
print(f"= of the host alone {len(launches(of_host))}")
torch.ahbm.synchronize()
counts: list[int] = []
with profile(
    schedule=schedule(wait=1, warmup=1, active=2),
    on_trace_ready=lambda profiled: counts.append(len(launches(profiled))),
) as scheduled:
    for _ in range(4):
        model(x)
        torch.ahbm.synchronize()
        scheduled.step()
print(f"= of two steps {counts}")
