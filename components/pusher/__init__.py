"""The Pusher: TFX's own, which then names the pushed model in `BLESSED.json`."""
