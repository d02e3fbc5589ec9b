"""Pages and pictures drawn from what runs have saved, new runs and old ones alike."""
