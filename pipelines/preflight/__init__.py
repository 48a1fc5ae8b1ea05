"""Whether a training on TPUs would work and be fed: rules that are asked on a CPU."""
