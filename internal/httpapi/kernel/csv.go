package kernel

import (
	"strconv"
	"strings"
)

// Inert is a text for a cell of a table, which a spreadsheet does not take for a formula:
// what would be one begins with an apostrophe. A number stays one.
func Inert(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}
