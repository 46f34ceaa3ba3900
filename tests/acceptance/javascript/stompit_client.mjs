// stompit: streams over TCP, written for Node.js.
import stompit from "stompit";

import { Inbox, within } from "./inbox.mjs";

export class Stompit {
  #client;
  #transactions = {};
  inbox = new Inbox();
  heartBeats = 0;

  static async open(port, { clientId, passcode = "guest", heartBeat = 0 } = {}) {
    const opened = new Stompit();
    await opened.#open(port, clientId, passcode, heartBeat);
    return opened;
  }

  async #open(port, clientId, passcode, heartBeat) {
    const connectHeaders = { host: "/", login: "guest", passcode, "heart-beat": `${heartBeat},${heartBeat}` };
    if (clientId) connectHeaders["client-id"] = clientId;
    this.#client = await within(new Promise((resolve, reject) => {
      stompit.connect({ host: "127.0.0.1", port, connectHeaders }, (error, client) => (error ? reject(error) : resolve(client)));
    }), "CONNECTED");
    this.#client.getTransportSocket().on("data", (octets) => { if (octets.length === 1) this.heartBeats += 1; });
  }

  // The library numbers its receipts and asks for them by a callback.
  #confirmed(act) {
    return within(new Promise((resolve) => act({ onReceipt: resolve })), "RECEIPT");
  }

  send(destination, body, { transaction, ...headers } = {}) {
    const sender = transaction ? this.#transactions[transaction] : this.#client;
    return this.#confirmed((options) => {
      const frame = sender.send({ destination, persistent: "true", "content-length": Buffer.byteLength(body), ...headers }, options);
      frame.write(body);
      frame.end();
    });
  }

  // SUBSCRIBE and UNSUBSCRIBE cannot be confirmed by this library: what is confirmed after them tells that they are done.
  async listen(destination, link, headers = {}) {
    this.#client.subscribe({ destination, ack: "client-individual", ...headers, id: link }, (error, message) => {
      if (error) return;
      const parts = [];
      message.on("data", (part) => parts.push(part));
      message.on("end", () => {
        const octets = Buffer.concat(parts);
        this.inbox.put({ body: octets.toString(), octets, headers: message.headers, message });
      });
    });
    await this.send("/topic/nobody", "x");
  }

  async unsubscribe(link, headers = {}) {
    this.#client.getSubscription(link).unsubscribe(headers);
    await this.send("/topic/nobody", "x");
  }

  ack(message, headers = {}) {
    return this.#confirmed((options) => this.#client.ack(message.message, headers, options));
  }

  nack(message, headers = {}) {
    return this.#confirmed((options) => this.#client.nack(message.message, headers, options));
  }

  begin(transaction) {
    this.#transactions[transaction] = this.#client.begin(transaction);
  }

  commit(transaction) {
    return this.#confirmed((options) => this.#transactions[transaction].commit(options));
  }

  abort(transaction) {
    return this.#confirmed((options) => this.#transactions[transaction].abort(options));
  }

  close() {
    return within(new Promise((resolve) => this.#client.disconnect(resolve)), "end of the connection");
  }

  vanish() {
    const gone = new Promise((resolve) => this.#client.getTransportSocket().once("close", resolve));
    this.#client.destroy();
    return within(gone, "end of the connection");
  }
}
