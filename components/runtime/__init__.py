"""The surroundings of every component: containers, mounts, Beam, artifacts, JobSets."""
