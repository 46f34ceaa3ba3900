"""What pages are told while they are open: one feed a process reads what the node writes, and tells every page what has changed of what it shows."""
