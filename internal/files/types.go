package files

import (
	"bytes"
	"mime"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/fault"
)

// refusedExtensions are programs and scripts. Code belongs in a node's
// command, where everybody can read it.
var refusedExtensions = words(`
	exe dll so dylib msi com scr bat cmd ps1 psm1 vbs vbe wsf wsh hta cpl sys drv lnk reg
	js mjs cjs jar war ear class sh bash zsh csh tcsh ksh fish py pyc pyo pyw pl pm rb php phtml phar cgi r lua tcl
	app command apk ipa deb rpm snap dmg pkg run appimage elf ko`)

// refusedTypes are the same by their media type.
var refusedTypes = words(`
	application/x-msdownload application/x-dosexec application/x-executable application/x-pie-executable application/x-elf
	application/x-sharedlib application/x-mach-binary application/vnd.microsoft.portable-executable application/x-msdos-program
	application/x-msi application/x-bat application/bat application/x-sh application/x-shellscript text/x-shellscript text/x-sh
	application/x-csh application/x-powershell text/x-powershell application/x-python application/x-python-code
	application/x-bytecode.python text/x-python text/x-script.python application/javascript application/x-javascript text/javascript
	application/ecmascript text/ecmascript text/jscript text/vbscript application/x-perl text/x-perl application/x-ruby text/x-ruby
	application/x-php application/x-httpd-php text/x-php application/java-archive application/x-java-archive
	application/vnd.android.package-archive application/vnd.debian.binary-package application/x-debian-package application/x-rpm
	application/x-redhat-package-manager application/x-apple-diskimage`)

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

const (
	maxFileName = 200
	maxType     = 127
)

// check refuses what may not be uploaded: all that is malformed at once, then
// size and type.
func check(in Presign) error {
	if in.ContentType == FolderType {
		return fault.Problems([]fault.Detail{{Path: "contentType", Message: "is that of a folder"}}, "a folder is sent in parts: use /api/files/uploads")
	}
	return checkUpTo(in, maxSize, "5 GB")
}

func checkUpTo(in Presign, most int64, mostText string) error {
	var wrong []fault.Detail
	if !goodName(in.Name) {
		wrong = append(wrong, fault.Detail{Path: "filename", Message: "needs 1 to 200 bytes without slashes or control characters"})
	}
	media, _, err := mime.ParseMediaType(in.ContentType)
	if err != nil || len(in.ContentType) > maxType || !strings.Contains(media, "/") {
		wrong = append(wrong, fault.Detail{Path: "contentType", Message: "is not a media type such as text/csv"})
	}
	if in.Size < 0 {
		wrong = append(wrong, fault.Detail{Path: "size", Message: "must not be negative"})
	}
	switch {
	case len(wrong) > 0:
		return fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	case in.Size > most:
		return fault.TooLarge("a file may have at most %s", mostText)
	case in.ContentType == FolderType:
		return nil // what is in it has names of its own
	case programName(in.Name) || refusedTypes[strings.ToLower(media)]:
		return errProgram
	}
	return nil
}

// programName reports whether programs and scripts have names like this.
func programName(name string) bool { return refusedExtensions[extension(name)] }

var errProgram = fault.Unsupported("programs and scripts cannot be uploaded: put the code into the command of a step")

func goodName(name string) bool {
	return name != "" && len(name) <= maxFileName && name != "." && name != ".." && utf8.ValidString(name) &&
		strings.TrimSpace(name) == name && !strings.ContainsAny(name, `/\`) && !strings.ContainsFunc(name, unicode.IsControl)
}

// extension is what follows the last dot, as Windows would read it: without
// dots and spaces at the end.
func extension(name string) string {
	ext := path.Ext(strings.TrimRight(name, ". "))
	return strings.ToLower(strings.TrimPrefix(ext, "."))
}

// sniffed is how many bytes tell a program.
const sniffed = 512

// program reports whether a file that begins so is one, whatever it is called:
// ELF, PE, Mach-O (all four kinds and the fat ones), or a script's first line.
func program(head []byte) bool {
	for _, magic := range []string{
		"\x7fELF", "MZ", "#!", "\xef\xbb\xbf#!",
		"\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe", "\xbe\xba\xfe\xca",
	} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return false
}
