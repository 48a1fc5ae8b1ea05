"""The only place that opens models: what others have made is walked before anything in it runs."""
