// `node play.mjs PORT CLIENT NAME SCENARIO`: one scenario with one client, on queues and topics of this name. Exits with 0 if all went well.
import { StompJs } from "./stompjs_client.mjs";
import { Stompit } from "./stompit_client.mjs";
import * as refusals from "./refusals.mjs";
import * as scenarios from "./scenarios.mjs";

const [port, kind, name, scenario] = process.argv.slice(2);
const Client = { stompjs: StompJs, stompit: Stompit }[kind];

await { ...scenarios, ...refusals }[scenario]((options) => Client.open(Number(port), options), name);
