def memory_of_worker() -> int:
    """Nothing."""
    return 0
