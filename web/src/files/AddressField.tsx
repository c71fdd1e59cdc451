import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { connectionsQuery } from "../connections/queries.ts";
import { Button } from "../ui/Button.tsx";
import { Field, Input, Select } from "../ui/Field.tsx";
import { asText, fitting, problemOf } from "./addresses.ts";

const BucketBrowser = lazy(() => import("./BucketBrowser.tsx"));

interface AddressFieldProps {
  multiple: boolean;
  folder: boolean;
  onAdd: (text: string) => void;
}

/** AddressField takes an input from where it lies: a bucket, or a link. */
export function AddressField({ multiple, folder, onAdd }: AddressFieldProps) {
  const [address, setAddress] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  const [tried, setTried] = useState(false);
  const [browsing, setBrowsing] = useState(false);
  const connections = useQuery(connectionsQuery);
  const buckets = (connections.data ?? []).filter((each) => each.type === "s3");
  const offered = fitting(address, connections.data ?? []);
  const connection = chosen ?? offered[0]?.id ?? "";
  const problem = problemOf(address, multiple, folder);
  const add = () => {
    setTried(true);
    if (problem) return;
    onAdd(asText(offered.some((each) => each.id === connection) ? { url: address, connection } : address));
    setAddress("");
    setChosen(null);
    setTried(false);
  };
  return (
    <fieldset className="mt-4">
      <legend className="text-sm font-medium">Or use a file or folder stored elsewhere</legend>
      <div className="mt-1 grid gap-2 sm:grid-cols-[1fr_auto] sm:items-start">
        <Field
          label="Address"
          hint={multiple ? "* matches any text within a folder." : null}
          error={tried && problem ? problem : undefined}
        >
          <Input
            className="font-mono"
            spellCheck={false}
            placeholder={
              folder ? "s3://lab/run7/" : multiple ? "s3://lab/run7/*.fq.gz" : "s3://lab/reference.fa or https://…"
            }
            value={address}
            onChange={(event) => setAddress(event.target.value.trim())}
            onKeyDown={(event) => {
              if (event.key !== "Enter") return;
              event.preventDefault();
              add();
            }}
          />
        </Field>
        <Button className="sm:mt-6" onClick={add}>
          Use
        </Button>
      </div>
      {offered.length > 0 && (
        <Field label="Connection" className="mt-2">
          <Select value={connection} onChange={(event) => setChosen(event.target.value)}>
            {offered.map((each) => (
              <option key={each.id} value={each.id}>
                {each.name}
              </option>
            ))}
            <option value="">None (public)</option>
          </Select>
        </Field>
      )}
      {buckets.length > 0 ? (
        <Button size="sm" className="mt-2" aria-expanded={browsing} onClick={() => setBrowsing(!browsing)}>
          {browsing ? "Hide buckets" : "Browse a bucket"}
        </Button>
      ) : (
        connections.data && (
          <p className="mt-2 text-[13px] text-muted">Add a bucket under Team → Connections to browse it here.</p>
        )
      )}
      {browsing && (
        <Suspense fallback={null}>
          <BucketBrowser
            buckets={buckets}
            folder={folder}
            onPick={(url, connection) => onAdd(asText({ url, connection }))}
          />
        </Suspense>
      )}
    </fieldset>
  );
}
