"""What every component runs in: containers, mounts, Beam, artifacts, JobSets."""
