// Drives real y-websocket clients: one JSON command a line on stdin, one answer
// a line on stdout. `open` makes a client; `run` gives a piece of code its
// document and its provider; `wait` runs one until it is true.
import { createInterface } from 'node:readline'
import { readVarString, readVarUint } from 'lib0/decoding'
import { WebSocket } from 'ws'
import { WebsocketProvider } from 'y-websocket'
import * as Y from 'yjs'

const clients = new Map()

function open({ name, url, room, token, ack, query = {} }) {
  const doc = new Y.Doc()
  const me = { doc, Y, sent: 0, stored: 0, opened: 0, settled: null, closed: null, shut: null, errors: [] }
  // Counts what the server counts, too: the changes this client has sent.
  class Counting extends WebSocket {
    constructor(...args) {
      super(...args)
      me.sent = me.stored = 0
      this.on('open', () => me.opened++)
      this.on('close', (code, reason) => (me.shut = { code, reason: String(reason) }))
      this.on('error', (e) => me.errors.push(String(e.message)))
    }
    send(data) {
      if (data[0] === 0 && data[1] > 0) me.sent++
      super.send(data)
    }
  }
  me.provider = new WebsocketProvider(url, room, doc, {
    params: { token, ...(ack ? { ack: '1' } : {}), ...query },
    WebSocketPolyfill: Counting,
    disableBc: true,
    maxBackoffTime: 500
  })
  me.provider.messageHandlers[100] = (_, decoder) => (me.stored = readVarUint(decoder))
  me.provider.messageHandlers[101] = (_, decoder) => (me.settled = JSON.parse(readVarString(decoder)))
  me.provider.on('closed', (event) => (me.closed = { code: event.code, reason: event.reason }))
  me.awareness = me.provider.awareness
  // Everything this client made is stored.
  me.saved = () => me.provider.synced && me.stored >= me.sent
  clients.set(name, me)
}

const compiled = new Map()
function run(me, code) {
  if (!compiled.has(code)) compiled.set(code, new Function('me', 'doc', 'provider', 'awareness', 'Y', code))
  return compiled.get(code)(me, me.doc, me.provider, me.awareness, Y)
}

async function carryOut(command) {
  if (command.do === 'open') return open(command)
  const me = clients.get(command.name)
  if (command.do === 'run') return run(me, command.code)
  for (const until = Date.now() + command.within; ; ) {
    const value = run(me, command.code)
    if (value || Date.now() > until) return value
    await new Promise((done) => setTimeout(done, 5))
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer
  try {
    answer = { value: (await carryOut(JSON.parse(line))) ?? null }
  } catch (e) {
    answer = { error: e.stack }
  }
  process.stdout.write(JSON.stringify(answer) + '\n')
}
process.exit(0)
