"""What bench/run is made of: servers, load, figures, reports. Standard library only."""
