import { CreditCard, Files, FileText, MessageSquare, Play, UserRound, Users, Workflow } from "lucide-react";

/** The places of the app, in the order of the rail; `g` and the key goes there. */
export const places = [
  { to: "/workflows", label: "Workflows", icon: Workflow, key: "w" },
  { to: "/runs", label: "Runs", icon: Play, key: "r" },
  { to: "/files", label: "Files", icon: Files, key: "f" },
  { to: "/papers", label: "Papers", icon: FileText, key: "p" },
  { to: "/chat", label: "Chat", icon: MessageSquare, key: "c" },
  { to: "/billing", label: "Billing", icon: CreditCard, key: "b" },
  { to: "/team", label: "Team", icon: Users, key: "t" },
  { to: "/account", label: "Account", icon: UserRound, key: "a" },
] as const;
