"""The import path of before of public closed forms, which are in `kernbench.oracle.theory`."""
