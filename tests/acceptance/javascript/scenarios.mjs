// What an application does, with any of the clients: each scenario gets `open` and the name of a queue or topic of its own.
import assert from "node:assert/strict";

import { pause } from "./inbox.mjs";

const DURABLE = "durable-subscription-name";

const bodies = async (client, count) => {
  const found = [];
  for (let number = 0; number < count; number += 1) found.push((await client.inbox.next()).body);
  return found;
};
const flagged = (message) => message.headers.redelivered ?? "false";

// -- queues ----------------------------------------------------------------------------------------------------------------------------
export async function text_and_headers_come_back_as_sent(open, name) {
  const client = await open();
  const texts = ["hello", "gr\u00fc\u00dfe \u65e5\u672c\u8a9e \u{1f409}", "line\nline\r\n"];
  const kind = "a:b \\ c\nd"; // not "\\c": stompjs decodes its escapes one after the other, so that it would become a colon
  for (const text of texts) await client.send(`/queue/${name}`, text, { "x-kind": kind });
  await client.listen(`/queue/${name}`, "1", { ack: "auto" });
  for (const text of texts) {
    const message = await client.inbox.next();
    assert.equal(message.body, text);
    assert.equal(message.headers["x-kind"], kind);
    assert.equal(message.headers.destination, `/queue/${name}`);
    assert.equal(flagged(message), "false");
  }
  await client.inbox.none();
  await client.close();
}

export async function octets_come_back_as_sent_however_many(open, name) {
  const client = await open();
  const all = Buffer.from(Array.from({ length: 256 }, (_, octet) => octet));
  const sizes = [256, 300_000, 2_000_000];
  for (const size of sizes) await client.send(`/queue/${name}`, Buffer.alloc(size, all));
  await client.listen(`/queue/${name}`, "1", { ack: "auto" });
  for (const size of sizes) assert.ok(Buffer.alloc(size, all).equals(Buffer.from((await client.inbox.next()).octets)), `${size} octets`);
  await client.close();
}

export async function what_was_not_acknowledged_comes_back_flagged(open, name) {
  const [first, second] = [await open(), await open()];
  for (const text of "abc") await first.send(`/queue/${name}`, text);
  await first.listen(`/queue/${name}`, "1");
  await first.inbox.next();
  await first.ack(await first.inbox.next());
  await first.inbox.next();
  await first.vanish();
  await second.listen(`/queue/${name}`, "1");
  for (const text of "ac") {
    const message = await second.inbox.next();
    assert.deepEqual([message.body, flagged(message)], [text, "true"]);
    await second.ack(message);
  }
  await second.inbox.none();
  await second.close();
}

export async function one_acknowledgement_settles_all_before_it(open, name) {
  const client = await open();
  for (const text of "abcd") await client.send(`/queue/${name}`, text);
  await client.listen(`/queue/${name}`, "1", { ack: "client" });
  await bodies(client, 2);
  await client.ack(await client.inbox.next());
  await client.close();
  const other = await open();
  await other.listen(`/queue/${name}`, "1");
  assert.deepEqual(await bodies(other, 1), ["d"]);
  await other.inbox.none();
  await other.close();
}

export async function a_refused_message_comes_again(open, name) {
  const client = await open();
  await client.send(`/queue/${name}`, "x");
  await client.listen(`/queue/${name}`, "1");
  await client.nack(await client.inbox.next());
  const again = await client.inbox.next();
  assert.deepEqual([again.body, flagged(again)], ["x", "true"]);
  await client.ack(again);
  await client.close();
}

export async function heart_beats_keep_an_idle_connection(open, name) {
  const client = await open({ heartBeat: 1000 });
  await pause(4_500);
  assert.ok(client.heartBeats >= 2, `${client.heartBeats} heart-beats`);
  await client.send(`/queue/${name}`, "still here");
  await client.close();
}

export async function a_consumer_takes_what_its_selector_chooses(open, name) {
  const [red, rest] = [await open(), await open()];
  await red.listen(`/queue/${name}`, "1", { ack: "auto", selector: "colour = 'red' AND weight < 10" });
  for (const [text, colour, weight] of [["a", "red", "9"], ["b", "red", "100"], ["c", "green", "1"]]) {
    await red.send(`/queue/${name}`, text, { colour, weight });
  }
  assert.deepEqual(await bodies(red, 1), ["a"]);
  await red.inbox.none();
  await rest.listen(`/queue/${name}`, "1", { ack: "auto" });
  assert.deepEqual(await bodies(rest, 2), ["b", "c"]);
  await red.close();
  await rest.close();
}

export async function a_browser_sees_everything_and_takes_nothing(open, name) {
  const client = await open();
  for (const text of "abc") await client.send(`/queue/${name}`, text);
  await client.listen(`/queue/${name}`, "look", { ack: "auto", browser: "true" });
  assert.deepEqual(await bodies(client, 3), ["a", "b", "c"]);
  assert.equal((await client.inbox.next()).headers.browser, "end");
  await client.unsubscribe("look");
  await client.listen(`/queue/${name}`, "take");
  const first = await client.inbox.next();
  assert.deepEqual([first.body, flagged(first)], ["a", "false"]);
  await client.close();
}

export async function a_delayed_message_comes_when_it_is_due(open, name) {
  const client = await open();
  await client.listen(`/queue/${name}`, "1", { ack: "auto" });
  const began = Date.now();
  await client.send(`/queue/${name}`, "delayed", { delay: "1500" });
  await client.send(`/queue/${name}`, "at once");
  assert.deepEqual(await bodies(client, 2), ["at once", "delayed"]);
  assert.ok(Date.now() - began >= 1450);
  await client.close();
}

export async function requests_are_answered(open, name) {
  const [requester, responder] = [await open(), await open()];
  await responder.listen(`/queue/${name}`, "1");
  await requester.listen("/temp-queue/replies", "1", { ack: "auto" });
  for (const number of ["1", "2"]) {
    await requester.send(`/queue/${name}`, `question ${number}`, { "reply-to": "/temp-queue/replies", "correlation-id": number });
    const request = await responder.inbox.next();
    await responder.send(request.headers["reply-to"], `answer ${number}`, { "correlation-id": request.headers["correlation-id"] });
    await responder.ack(request);
    const reply = await requester.inbox.next();
    assert.deepEqual([reply.body, reply.headers["correlation-id"]], [`answer ${number}`, number]);
  }
  await requester.close();
  await responder.close();
}

// -- topics ----------------------------------------------------------------------------------------------------------------------------
export async function all_who_are_subscribed_get_a_copy(open, name) {
  const early = [await open(), await open()];
  for (const client of early) await client.listen(`/topic/${name}`, "1", { ack: "auto" });
  for (const text of "abc") await early[0].send(`/topic/${name}`, text);
  const late = await open();
  await late.listen(`/topic/${name}`, "1", { ack: "auto" });
  for (const client of early) assert.deepEqual(await bodies(client, 3), ["a", "b", "c"]);
  await late.inbox.none();
  for (const client of [...early, late]) await client.close();
}

export async function a_durable_subscription_keeps_what_its_client_missed(open, name) {
  const clientId = `${name} of its own`;
  let client = await open({ clientId });
  await client.listen(`/topic/${name}`, "1", { [DURABLE]: "d" });
  await client.close();
  const publisher = await open();
  for (const text of "ab") await publisher.send(`/topic/${name}`, text);
  await publisher.close();
  client = await open({ clientId });
  await client.listen(`/topic/${name}`, "1", { [DURABLE]: "d" });
  const [a, b] = [await client.inbox.next(), await client.inbox.next()];
  assert.deepEqual([a.body, flagged(a), b.body, flagged(b)], ["a", "false", "b", "false"]);
  await client.ack(a);
  await client.close();
  client = await open({ clientId });
  await client.listen(`/topic/${name}`, "1", { [DURABLE]: "d" });
  const again = await client.inbox.next();
  assert.deepEqual([again.body, flagged(again)], ["b", "true"]);
  await client.ack(again);
  await client.unsubscribe("1", { [DURABLE]: "d" });
  await client.send(`/topic/${name}`, "to nobody");
  await client.listen(`/topic/${name}`, "1", { [DURABLE]: "d" });
  await client.inbox.none();
  await client.close();
}

export async function a_shared_subscription_divides_its_messages(open, name) {
  const consumers = [await open(), await open()];
  const shared = { [DURABLE]: `shared ${name}`, shared: "true", "prefetch-count": "1" };
  for (const client of consumers) await client.listen(`/topic/${name}`, "1", shared);
  for (const text of "abcd") await consumers[0].send(`/topic/${name}`, text);
  const found = [];
  for (const _ of "ab") {
    for (const client of consumers) {
      const message = await client.inbox.next();
      found.push(message.body);
      await client.ack(message);
    }
  }
  assert.deepEqual(found.sort(), ["a", "b", "c", "d"]);
  for (const client of consumers) {
    await client.inbox.none();
    await client.close();
  }
}

export async function a_selector_chooses(open, name) {
  const client = await open();
  await client.listen(`/topic/${name}`, "heavy", { ack: "auto", selector: "weight > 10 AND colour <> 'green'" });
  await client.listen(`/topic/${name}`, "green", { ack: "auto", selector: "colour = 'green'" });
  for (const [text, colour, weight] of [["a", "red", "9"], ["b", "red", "100"], ["c", "green", "100"]]) {
    await client.send(`/topic/${name}`, text, { colour, weight });
  }
  const messages = [await client.inbox.next(), await client.inbox.next()];
  assert.deepEqual(messages.map((message) => `${message.headers.subscription} ${message.body}`).sort(), ["green c", "heavy b"]);
  await client.inbox.none();
  await client.close();
}

export async function a_pattern_takes_topics_to_come(open, name) {
  const client = await open();
  await client.listen(`/topic/${name}.*`, "level", { ack: "auto" });
  await client.listen(`/topic/${name}.>`, "all", { ack: "auto" });
  await client.send(`/topic/${name}.a`, "a");
  await client.send(`/topic/${name}.a.b`, "a.b");
  const messages = [];
  for (const _ of "abc") messages.push(await client.inbox.next());
  assert.deepEqual(messages.map((message) => `${message.headers.subscription} ${message.headers.destination}`).sort(), [
    `all /topic/${name}.a`, `all /topic/${name}.a.b`, `level /topic/${name}.a`,
  ]);
  await client.inbox.none();
  await client.close();
}

export async function no_local_leaves_out_ones_own(open, name) {
  const [client, other] = [await open({ clientId: `${name} of its own` }), await open()];
  await client.listen(`/topic/${name}`, "1", { ack: "auto", "no-local": "true" });
  await client.send(`/topic/${name}`, "mine");
  await other.send(`/topic/${name}`, "theirs");
  assert.deepEqual(await bodies(client, 1), ["theirs"]);
  await client.inbox.none();
  await client.close();
  await other.close();
}

// -- transactions ----------------------------------------------------------------------------------------------------------------------
export async function nothing_is_seen_before_the_commit_and_all_after(open, name) {
  const [client, reader] = [await open(), await open()];
  await reader.listen(`/queue/${name}`, "queue", { ack: "auto" });
  await reader.listen(`/topic/${name}`, "topic", { ack: "auto" });
  client.begin("t");
  await client.send(`/queue/${name}`, "a", { transaction: "t" });
  await client.send(`/topic/${name}`, "b", { transaction: "t" });
  await client.send(`/queue/${name}`, "c", { transaction: "t" });
  await reader.inbox.none();
  await client.commit("t");
  assert.deepEqual((await bodies(reader, 3)).sort(), ["a", "b", "c"]);
  await client.close();
  await reader.close();
}

export async function an_abort_undoes_what_was_sent_and_acknowledged(open, name) {
  const client = await open();
  await client.send(`/queue/${name}`, "x");
  await client.listen(`/queue/${name}`, "1");
  client.begin("t");
  await client.send(`/queue/${name}`, "aborted", { transaction: "t" });
  await client.ack(await client.inbox.next(), { transaction: "t" });
  await client.abort("t");
  const again = await client.inbox.next();
  assert.deepEqual([again.body, flagged(again)], ["x", "true"]);
  client.begin("t");
  await client.ack(again, { transaction: "t" });
  await client.commit("t");
  await client.inbox.none();
  await client.close();
  const other = await open();
  await other.listen(`/queue/${name}`, "1");
  await other.inbox.none();
  await other.close();
}

export async function acknowledged_and_refused_within_count_at_the_commit(open, name) {
  const client = await open();
  for (const text of ["bad", "good"]) await client.send(`/queue/${name}`, text);
  await client.listen(`/queue/${name}`, "1");
  const [bad, good] = [await client.inbox.next(), await client.inbox.next()];
  client.begin("t");
  await client.nack(bad, { transaction: "t" });
  await client.ack(good, { transaction: "t" });
  await client.inbox.none();
  await client.commit("t");
  const again = await client.inbox.next();
  assert.deepEqual([again.body, flagged(again)], ["bad", "true"]);
  await client.ack(again);
  await client.inbox.none();
  await client.close();
}
