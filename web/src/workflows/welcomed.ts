const key = "millrace.welcomed";

/** welcomed tells whether the first steps are behind this browser, or were waved away. */
export function welcomed(): boolean {
  return localStorage.getItem(key) !== null;
}

export function endWelcome(): void {
  localStorage.setItem(key, "1");
}
