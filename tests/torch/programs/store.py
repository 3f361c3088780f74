"""Keys of a store: those of the rank itself, and one that another rank sets."""

import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store

dist.init_process_group("ahbm")
store = _get_default_store()
store.set("own", "1")
store.append("own", "2")
assert store.get("own") == b"12"
assert store.add("count", 2) == 2
assert store.add("count", 3) == 5
assert store.check(["own", "count"])
assert not store.check(["other"])
assert store.compare_set("own", "12", "3") == b"3"
assert store.compare_set("own", "12", "4") == b"3"
assert store.delete_key("own")
assert not store.delete_key("own")
if dist.get_rank():
    store.set("other", "value")
else:
    store.wait(["other"])
