import { Check, Copy as CopyIcon } from "lucide-react";
import { useState } from "react";
import { Button, IconButton } from "./Button.tsx";
import { copyText } from "./copyText.ts";

/** Copy puts text on the clipboard and says whether it did. */
export function Copy({ text, label = "Copy", words }: { text: string; label?: string; words?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    if (!(await copyText(text))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  const icon = copied ? <Check className="size-4 text-ok" aria-hidden /> : <CopyIcon className="size-4" aria-hidden />;
  if (words) {
    return (
      <Button size="sm" icon={icon} onClick={() => void copy()}>
        {copied ? "Copied" : words}
      </Button>
    );
  }
  return <IconButton size="sm" label={copied ? "Copied" : label} icon={icon} onClick={() => void copy()} />;
}
