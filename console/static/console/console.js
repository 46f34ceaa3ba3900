// The console's own script: everything works without it, too. Each module adds one thing to the page it finds.
import { keyboard } from "./keyboard.js";
import { theme } from "./theme.js";
import { dialogs } from "./dialogs.js";
import { live } from "./live.js";
import { picking } from "./picking.js";
import { picks } from "./picks.js";

theme();
keyboard();
dialogs();
live();
picking();
picks();
