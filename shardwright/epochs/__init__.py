"""Which records are read when, where and how, by arithmetic: shares of hosts, the global order, what is kept."""
