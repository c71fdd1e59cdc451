// A stranger's server: it notes every connection and every packet that reaches it.
import { createSocket } from "node:dgram";
import { createServer, type Socket } from "node:net";

export interface Listener {
  host: string;
  heard: string[];
  close: () => Promise<void>;
}

export async function listen(): Promise<Listener> {
  const heard: string[] = [];
  const open = new Set<Socket>();
  const tcp = createServer((socket) => {
    open.add(socket);
    const at = heard.push("a connection") - 1;
    socket.on("data", (text) => {
      heard[at] += ` ${text.toString("latin1").slice(0, 80)}`;
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
    socket.on("error", () => {});
    socket.on("close", () => open.delete(socket));
  });
  await new Promise<void>((resolve) => tcp.listen(0, "127.0.0.1", resolve));
  const { port } = tcp.address() as { port: number };
  const udp = createSocket("udp4", (packet) => heard.push(`a packet of ${packet.length} bytes`));
  await new Promise<void>((resolve) => udp.bind(port, "127.0.0.1", resolve));
  return {
    host: `127.0.0.1:${port}`,
    heard,
    close: async () => {
      udp.close();
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => tcp.close(resolve));
    },
  };
}
