// Hocuspocus with its defaults, and documents kept as files: it stores a whole
// document two seconds after it was changed, ten at the latest.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Database } from '@hocuspocus/extension-database'
import { Server } from '@hocuspocus/server'

const [host, port, dir] = process.argv.slice(2)
mkdirSync(dir, { recursive: true })
const file = (name) => join(dir, encodeURIComponent(name))

new Server({
  address: host,
  port: Number(port),
  quiet: true,
  extensions: [
    new Database({
      fetch: async ({ documentName }) => {
        try {
          return readFileSync(file(documentName))
        } catch {
          return null
        }
      },
      store: async ({ documentName, state }) => writeFileSync(file(documentName), state, { flush: true })
    })
  ]
}).listen()
