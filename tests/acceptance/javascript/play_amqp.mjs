// `node play_amqp.mjs PORT NAME SCENARIO`: one scenario on queues and topics of this name. Exits with 0 if all went well.
import * as scenarios from "./amqp_scenarios.mjs";

const [port, name, scenario] = process.argv.slice(2);

await scenarios[scenario](Number(port), name);
process.exit(0);
