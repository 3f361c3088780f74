"""Routes through a system, and times of messages along them on an idle system."""
