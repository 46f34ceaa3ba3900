// rhea, the AMQP 1.0 client for JavaScript.
import rhea from "rhea";

import { Inbox, within } from "./inbox.mjs";

const happens = (on, event, unless) =>
  within(
    new Promise((resolve, reject) => {
      on.once(event, resolve);
      if (unless) on.once(unless, (context) => reject(new Error(String(on.error?.description ?? context.error?.message ?? unless))));
    }),
    event,
  );

export class Rhea {
  #connection;

  static async open(port, { container = `rhea-${process.pid}-${Math.random()}`, ...options } = {}) {
    const opened = new Rhea();
    const made = rhea.create_container({ id: container });
    opened.#connection = made.connect({ host: "127.0.0.1", port, username: "guest", password: "guest", reconnect: false, ...options });
    const refused = new Promise((resolve) => { opened.#connection.once("connection_error", resolve); });
    await happens(opened.#connection, "connection_open", "connection_error");
    if (opened.#connection.remote.open.properties?.["amqp:connection-establishment-failed"]) { // it is told why in a close that follows
      await within(refused, "connection_error");
      throw new Error(opened.#connection.error.description);
    }
    return opened;
  }

  // The connection was lost, and made again, however long that takes.
  comes_back() {
    return new Promise((resolve) => { this.#connection.once("connection_open", resolve); });
  }

  async close() {
    const closed = happens(this.#connection, "connection_close");
    this.#connection.close();
    await closed;
  }

  // A receiver with an inbox; what comes is settled by whoever takes it.
  async receives(source, { credit = 100, ...options } = {}) {
    const receiver = this.#connection.open_receiver({ source, credit_window: 0, autoaccept: false, ...options });
    receiver.inbox = new Inbox();
    receiver.on("message", (context) => receiver.inbox.put({ ...context.message, delivery: context.delivery }));
    const refused = new Promise((resolve) => { receiver.once("receiver_error", resolve); });
    await happens(receiver, "receiver_open");
    if (!receiver.source?.address) { // it is told why in a detach that follows
      await within(refused, "receiver_error");
      throw new Error(receiver.error.description);
    }
    receiver.add_credit(credit);
    return receiver;
  }

  // Looks for the durable subscription of this name.
  async finds(name, capabilities) {
    const found = this.#connection.open_receiver({ name, source: { capabilities }, desired_capabilities: capabilities, credit_window: 0 });
    const refused = new Promise((resolve) => { found.once("receiver_error", resolve); });
    await happens(found, "receiver_open");
    if (found.source?.address) return found;
    await within(refused, "receiver_error");
    throw new Error(found.error.description);
  }

  // A link on which transactions are declared and discharged: rhea has no words for them.
  async coordinates() {
    const coordinator = this.#connection.open_sender({ target: {} });
    coordinator.local.attach.target = rhea.types.wrap_described([rhea.types.wrap_symbol("amqp:local-transactions")], 0x30);
    await happens(coordinator, "sendable", "sender_error");
    return coordinator;
  }

  async sends_to(target, options = {}) {
    const sender = this.#connection.open_sender({ target, ...options });
    await happens(sender, "sendable", "sender_error");
    return sender;
  }
}

// Sends, and waits for the outcome's name.
export async function outcome_of(sender, message) {
  const told = Promise.race(["accepted", "rejected", "released", "modified"].map((event) => new Promise((resolve) => { sender.once(event, () => resolve(event)); })));
  sender.send(message);
  return within(told, "an outcome");
}

// Sends many, and waits until all are settled.
export async function sends_all(sender, messages) {
  let left = messages.length;
  const settled = new Promise((resolve) => { sender.on("settled", () => { left -= 1; if (left === 0) resolve(); }); });
  for (const message of messages) sender.send(message);
  await within(settled, "outcomes");
}

export const goes = async (link, act, event) => {
  const over = happens(link, event);
  act();
  await over;
};
