// `node play_amqp.mjs PORT WORD SCENARIO...`: these scenarios, all at once, on queues and topics whose names have the word in them. A line for each: its
// name, and what went wrong, if anything.
import * as scenarios from "./amqp_scenarios.mjs";
import * as transactions from "./amqp_transactions.mjs";

const [port, word, ...wanted] = process.argv.slice(2);

async function play(scenario) {
  try {
    await { ...scenarios, ...transactions }[scenario](Number(port), `rhea.${scenario}.${word}`);
    console.log(scenario);
  } catch (error) {
    console.log(`${scenario} ${String(error.stack ?? error).replaceAll("\n", " ")}`);
  }
}

await Promise.all(wanted.map(play));
process.exit(0);
