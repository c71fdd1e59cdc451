// Holds a server against the conformance suite of the Model Context Protocol, as
// a server in each revision and as an authorization server, and has the
// protocol's own client use each tool. expected.json names the checks that fail,
// by the reason and the scenario. A check that fails and is not there is a
// failure here, and so is one that is there and passes.
//
//   check.mjs path/to/millrace
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Person } from '../sign-in/person.mjs'

const suite = join(import.meta.dirname, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
const expected = JSON.parse(await readFile(join(import.meta.dirname, 'expected.json'), 'utf8'))
const folder = await mkdtemp(join(tmpdir(), 'millrace-mcp.'))

// The suite cannot send a token, so a proxy before the server adds one.
let behind, token
const proxy = createServer((asked, answer) => {
  const headers = asked.url === '/mcp' ? { ...asked.headers, authorization: `Bearer ${token}` } : asked.headers
  const passed = request(behind + asked.url, { method: asked.method, headers }, (answered) => {
    answer.writeHead(answered.statusCode, answered.headers)
    answered.pipe(answer)
  })
  passed.on('error', () => answer.destroy())
  answer.on('close', () => passed.destroy()) // a client that leaves
  asked.pipe(passed)
})

async function listen(server) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server.address().port
}

// start starts a server with an empty data folder, and says where it listens.
async function start(program, publicURL) {
  const args = ['serve', '--listen', '127.0.0.1:0', '--public-urls', publicURL, '--data', join(folder, 'data'), '--drain', '1s', '--log-level', 'error']
  const server = spawn(program, args, { env: { PATH: process.env.PATH, HOME: folder }, stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface({ input: server.stdout })) {
    const found = /\(listening on (.*)\)/.exec(line)
    if (found) return [server, `http://${found[1]}`]
  }
  throw new Error('the server did not start')
}

async function post(path, body, cookie = '') {
  const r = await fetch(base + path, { method: 'POST', headers: { 'content-type': 'application/json', cookie }, body: JSON.stringify(body) })
  assert.equal(r.status, 201, path)
  return r.json()
}

// run runs the suite, hands each line that it prints to hear, and resolves to the
// checks, by "scenario check", with what each of their occurrences said.
async function run(args, hear = () => {}) {
  const out = await mkdtemp(join(folder, 'results.'))
  const child = spawn(process.execPath, [suite, ...args, '--output-dir', out], { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface({ input: child.stdout })) await hear(line)
  const checks = new Map()
  for (const name of await readdir(out)) {
    const scenario = name.replace(/^(authorization-server|server)-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$/, '$2')
    const text = await readFile(join(out, name, 'checks.json'), 'utf8').catch(() => '[{"id": "ends", "status": "FAILURE"}]')
    for (const check of JSON.parse(text)) {
      const id = `${scenario} ${check.id}`
      checks.set(id, [...(checks.get(id) ?? []), check])
    }
  }
  return checks
}

const mayFail = new Set(Object.values(expected).flatMap((scenarios) => Object.entries(scenarios).flatMap(([scenario, ids]) => ids.map((id) => `${scenario} ${id}`))))
const passed = new Set(), failed = new Set()
const complaints = []

// judge compares what a suite found with what is expected of it.
function judge(name, checks) {
  let passes = 0, fails = 0
  for (const [id, occurrences] of checks) {
    const wrong = occurrences.filter((c) => c.status === 'FAILURE' || c.status === 'WARNING')
    if (wrong.length > 0) {
      fails++
      failed.add(id)
      if (!mayFail.has(id)) complaints.push(`${name}: ${id} fails: ${wrong.map((c) => c.errorMessage ?? c.description).join('; ')}`)
    } else if (occurrences.some((c) => c.status === 'SUCCESS')) {
      passes++
      passed.add(id)
    }
  }
  if (passes === 0) complaints.push(`${name}: no check passes`)
  console.log(`mcp: ${name}: ${passes} checks pass, ${fails} fail`)
}

// useTools calls each tool. The client holds what it gives against its schema.
async function useTools() {
  const client = new Client({ name: 'check', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${base}/mcp`)))
  const left = new Set((await client.listTools()).tools.map((tool) => tool.name))
  const use = async (name, args) => {
    const result = await client.callTool({ name, arguments: args })
    assert.ok(!result.isError, `${name}: ${JSON.stringify(result.content)}`)
    left.delete(name)
    return result.structuredContent.data
  }
  const definition = { nodes: [{ id: 'a', command: 'echo done' }] }
  await use('who_am_i')
  await use('check_definition', { definition })
  const { id: workflowId } = await use('create_workflow', { name: 'Check', definition })
  await use('update_workflow', { workflowId, definition })
  await use('get_workflow', { workflowId })
  await use('list_workflows', { q: 'check' })
  const { runId } = await use('start_run', { workflowId, maxCredits: 1 })
  await use('get_run', { runId })
  await use('cancel_run', { runId })
  await use('list_runs', { workflowId })
  await use('read_log', { runId })
  await use('list_outputs', { runId })
  await use('list_files')
  await client.close()
  assert.deepEqual([...left], [], 'tools that were not used')
}

const base = `http://127.0.0.1:${await listen(proxy)}`
let server
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => {
  server?.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
  process.exit(1)
})
try {
  ;[server, behind] = await start(process.argv[2], base)
  const ada = await new Person(base).signUp('ada')
  token = (await post('/auth/api-tokens', { name: 'suite', scopes: ['read', 'run', 'write'] }, ada.cookie)).data.token
  await useTools()
  for (const revision of ['2025-11-25', '2026-07-28']) {
    judge(`server ${revision}`, await run(['server', '--url', `${base}/mcp`, '--requirements', revision]))
  }

  const free = createServer()
  const port = await listen(free)
  await new Promise((closed) => free.close(closed))
  const { client_id } = await post('/oauth/register', { client_name: 'suite', redirect_uris: [`http://127.0.0.1:${port}/callback`] })
  let page
  const asPerson = async (line) => {
    if (line.startsWith(`${base}/oauth/authorize?`)) page = line
    if (!line.startsWith('Callback server started')) return
    const allowed = await ada.submit(page, { decision: 'allow' })
    await fetch(allowed.headers.get('location'))
  }
  judge('authorization', await run(['authorization', '--url', base, '--client-id', client_id, '--resource', `${base}/mcp`, '--port', `${port}`], asPerson))
  for (const id of mayFail) if (passed.has(id) || !failed.has(id)) complaints.push(`${id} does not fail: take it out of expected.json`)
} finally {
  server?.kill()
  proxy.close()
  proxy.closeAllConnections()
  if (server && server.exitCode === null) await once(server, 'exit')
  await rm(folder, { recursive: true })
}
for (const text of complaints) console.log(`mcp: ${text}`)
process.exit(complaints.length > 0 ? 1 : 0)
