import { toast } from "./toast.ts";

/**
 * copyText puts text on the clipboard and reports whether it could. Pages without
 * HTTPS have no clipboard, and browsers may refuse it; people are told what to do instead.
 */
export async function copyText(
  text: string,
  instead = "Select the text and copy it with the keyboard.",
): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    toast.error("The browser doesn't let this page use the clipboard", { description: instead });
    return false;
  }
}
