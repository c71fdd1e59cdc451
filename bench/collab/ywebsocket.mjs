// The server that y-websocket brings along, with LevelDB.
const [host, port, dir] = process.argv.slice(2)
Object.assign(process.env, { HOST: host, PORT: port, YPERSISTENCE: dir })
await import(new URL('node_modules/y-websocket/bin/server.cjs', import.meta.url))
