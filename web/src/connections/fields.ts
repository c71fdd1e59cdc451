// Which fields each type of connection has, in the order in which people know them.
import type { NewConnection } from "./queries.ts";

export type ConnectionType = NewConnection["type"];
export type FieldName = Exclude<keyof NewConnection, "name" | "type">;

export interface FieldRule {
  name: FieldName;
  label: string;
  hint?: string;
  placeholder?: string;
  secret?: boolean;
  lines?: boolean;
  required?: boolean;
}

export const typeNames: Record<ConnectionType, string> = {
  s3: "Bucket (S3-compatible)",
  https: "HTTPS host",
  git: "Git host",
};

const login: FieldRule[] = [
  { name: "username", label: "Username", hint: "Only if you use a password instead of a token." },
  { name: "password", label: "Password", secret: true },
];

export const fieldsOf: Record<ConnectionType, FieldRule[]> = {
  s3: [
    {
      name: "endpoint",
      label: "Endpoint",
      placeholder: "https://s3.amazonaws.com",
      hint: "The address of the storage service. Empty: Amazon S3.",
    },
    { name: "region", label: "Region", placeholder: "eu-central-1" },
    { name: "bucket", label: "Bucket", required: true },
    { name: "prefix", label: "Folder", placeholder: "reads/", hint: "Only objects in this folder can be reached." },
    { name: "accessKey", label: "Access key", hint: "A read-only key is enough for inputs." },
    { name: "secretKey", label: "Secret key", secret: true },
  ],
  https: [
    { name: "host", label: "Host", placeholder: "data.example.org", required: true },
    { name: "token", label: "Token", secret: true },
    { name: "header", label: "Header", placeholder: "Authorization", hint: "The header that contains the token." },
    ...login,
  ],
  git: [
    { name: "host", label: "Host", placeholder: "github.com", required: true },
    { name: "token", label: "Token", secret: true, hint: "Or use a username and a password, or an SSH key." },
    ...login,
    { name: "sshKey", label: "SSH key", secret: true, lines: true, hint: "A private key without a passphrase." },
  ],
};

/** filled is what is sent: the fields of the type that are not empty. */
export function filled(name: string, type: ConnectionType, values: Partial<Record<FieldName, string>>): NewConnection {
  const body: NewConnection = { name, type };
  for (const field of fieldsOf[type]) {
    const value = values[field.name];
    if (value) body[field.name] = value;
  }
  return body;
}
