"""The Pusher: TFX's own, which then says in `BLESSED.json` which model is in force."""
