"""What bench/run and bench/run-storage are made of: servers, load, figures, reports. Standard library only."""
