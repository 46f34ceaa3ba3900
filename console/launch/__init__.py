"""Starting, watching and stopping the processes of one installation. Speaks to them by signals, exit codes and /health/ready only."""
