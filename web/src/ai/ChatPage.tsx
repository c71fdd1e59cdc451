import { Page } from "../app/Page.tsx";

export function ChatPage() {
  return <Page title="Chat">{null}</Page>;
}
