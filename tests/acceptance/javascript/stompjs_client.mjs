// @stomp/stompjs over TCP, the client of most browsers.
import { Client } from "@stomp/stompjs";
import { TCPWrapper } from "@stomp/tcp-wrapper";

import { Inbox, within } from "./inbox.mjs";

export class StompJs {
  #client;
  #receipts = 0;
  #refused;
  inbox = new Inbox();
  heartBeats = 0;

  static async open(port, { clientId, passcode = "guest", heartBeat = 0 } = {}) {
    const opened = new StompJs();
    await opened.#open(port, clientId, passcode, heartBeat);
    return opened;
  }

  async #open(port, clientId, passcode, heartBeat) {
    const connectHeaders = { login: "guest", passcode };
    if (clientId) connectHeaders["client-id"] = clientId;
    this.#client = new Client({
      webSocketFactory: () => new TCPWrapper("127.0.0.1", port),
      connectHeaders,
      reconnectDelay: 0,
      heartbeatIncoming: heartBeat,
      heartbeatOutgoing: heartBeat,
      onHeartbeatReceived: () => { this.heartBeats += 1; },
    });
    this.#refused = new Promise((resolve) => { this.#client.onStompError = (frame) => resolve(frame.headers.message); });
    const connected = new Promise((resolve) => { this.#client.onConnect = resolve; });
    this.#client.activate();
    const refused = this.#refused.then((message) => { throw new Error(message); });
    refused.catch(() => {}); // when it is connected already, refusal() tells
    await within(Promise.race([connected, refused]), "CONNECTED");
  }

  #confirmed(act) {
    this.#receipts += 1;
    const receipt = `confirmed-${this.#receipts}`;
    const here = new Promise((resolve) => this.#client.watchForReceipt(receipt, resolve));
    act(receipt);
    return within(here, "RECEIPT");
  }

  send(destination, body, headers = {}) {
    const content = typeof body === "string" ? { body } : { binaryBody: body };
    return this.#confirmed((receipt) =>
      this.#client.publish({ destination, ...content, headers: { persistent: "true", ...headers, receipt } }));
  }

  listen(destination, link, headers = {}) {
    const take = (frame) => this.inbox.put({ body: frame.body, octets: frame.binaryBody, headers: frame.headers });
    return this.#confirmed((receipt) =>
      this.#client.subscribe(destination, take, { ack: "client-individual", ...headers, id: link, receipt }));
  }

  unsubscribe(link, headers = {}) {
    return this.#confirmed((receipt) => this.#client.unsubscribe(link, { ...headers, receipt }));
  }

  ack(message, headers = {}) {
    return this.#confirmed((receipt) => this.#client.ack(message.headers.ack, message.headers.subscription, { ...headers, receipt }));
  }

  nack(message, headers = {}) {
    return this.#confirmed((receipt) => this.#client.nack(message.headers.ack, message.headers.subscription, { ...headers, receipt }));
  }

  begin(transaction) {
    this.#client.begin(transaction);
  }

  // This client asks for no receipt of COMMIT and ABORT: what is confirmed after them tells that they are done.
  commit(transaction) {
    this.#client.commit(transaction);
    return this.send("/topic/nobody", "");
  }

  abort(transaction) {
    this.#client.abort(transaction);
    return this.send("/topic/nobody", "");
  }

  commitOnly(transaction) {
    this.#client.commit(transaction);
  }

  subscribeOnly(destination, headers) {
    this.#client.subscribe(destination, () => {}, headers);
  }

  refusal() {
    return within(this.#refused, "ERROR");
  }

  close() {
    return within(this.#client.deactivate(), "end of the connection");
  }

  vanish() {
    return within(this.#client.deactivate({ force: true }), "end of the connection");
  }
}
