package line

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
	"time"
)

const maxFrame = 16 << 20 // bytes

// Frame is one event of a stream.
type Frame struct {
	ID   string // holds until there is another
	Data []byte
}

// Frames reads Server-Sent Events until the stream ends. retry is told when
// the server asks for another pause, alive at every line.
func Frames(in io.Reader, alive func(), retry func(time.Duration), each func(Frame) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxFrame)
	lines.Split(scanLines)
	var f Frame
	for lines.Scan() {
		alive()
		line := lines.Text()
		if line == "" {
			if len(f.Data) > 0 {
				if err := each(Frame{f.ID, bytes.TrimSuffix(f.Data, []byte("\n"))}); err != nil {
					return err
				}
			}
			f.Data = nil
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name { // a comment has no name
		case "data":
			f.Data = append(append(f.Data, value...), '\n')
		case "id":
			f.ID = value
		case "retry":
			if ms, err := strconv.Atoi(value); err == nil && ms >= 0 {
				retry(time.Duration(ms) * time.Millisecond)
			}
		}
	}
	return lines.Err()
}

// scanLines splits at LF, CRLF or CR, as the format allows.
func scanLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0:
		return 0, nil, nil // what is not ended by a line's end was cut off
	case data[i] == '\n':
		return i + 1, data[:i], nil
	case i+1 < len(data) && data[i+1] == '\n':
		return i + 2, data[:i], nil
	case i+1 < len(data) || atEOF:
		return i + 1, data[:i], nil
	default:
		return 0, nil, nil
	}
}
