"""Prints the number of threads of PyTorch, and how many different square roots of the same numbers
150 processes have whose first vector function is that one.
"""

import os
import zlib

import torch
import torch.distributed as dist

dist.init_process_group("ahbm")
print(f"= threads {torch.get_num_threads()}", flush=True)
numbers = torch.rand(8192, generator=torch.Generator().manual_seed(0))
results = set[int]()
for _ in range(150):
    reading, writing = os.pipe()
    if os.fork() == 0:
        checksum = zlib.crc32(numbers.sqrt().numpy().tobytes())
        os.write(writing, checksum.to_bytes(4, "little"))
        os._exit(0)
    os.close(writing)
    results.add(int.from_bytes(os.read(reading, 4), "little"))
    os.close(reading)
    os.wait()
print(f"= results {len(results)}", flush=True)
dist.destroy_process_group()
