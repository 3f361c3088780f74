"""Runs a program as one worker of torchrun, with one thread and without the end of the interpreter:
gloo_worker.py PROGRAM [ARGUMENT ...]. An exception of the program ends it as it does elsewhere.

On a busy machine, workers of gloo that had printed all their results and destroyed their process
group were seen to abort in the end of the interpreter ("terminate called without an active
exception"): threads of PyTorch may still release tensors then, for which they need the interpreter.

Workers share one pipe. With PYTHONUNBUFFERED in the environment, `print` writes a text and its
newline one by one, and two workers were seen to join their lines; here each line is one write.
"""

import io
import os
import runpy
import sys
from pathlib import Path

import torch

torch.set_num_threads(1)
program = sys.argv[1]
sys.argv = sys.argv[1:]
if isinstance(sys.stdout, io.TextIOWrapper):
    sys.stdout.reconfigure(line_buffering=True, write_through=False)
sys.path.insert(0, str(Path(program).parent))
runpy.run_path(program, run_name="__main__")
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)
