// Httpload keeps a fixed number of connections busy with one request, each
// asking again as soon as it is answered, and prints one JSON line: what was
// answered per second and the quantiles of every latency, none sampled away.
// It speaks just enough HTTP/1.1 to read an answer, on one core, to leave the
// machine to the server.
//
//	httpload -method POST -url http://127.0.0.1:8080/x -header 'Authorization: Bearer t' -body '{}' -conns 32 -for 5s
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	runtime.GOMAXPROCS(1)
	method := flag.String("method", "GET", "")
	target := flag.String("url", "", "")
	header := flag.String("header", "", "one header line")
	body := flag.String("body", "", "JSON")
	conns := flag.Int("conns", 32, "connections")
	warm := flag.Duration("warm", 500*time.Millisecond, "not measured, before")
	length := flag.Duration("for", 5*time.Second, "measured")
	flag.Parse()

	u, err := url.Parse(*target)
	if err != nil || u.Host == "" {
		log.Fatalf("httpload: -url %q is no URL", *target)
	}
	request := requestBytes(*method, u, *header, *body)
	from := time.Now().Add(*warm)
	until := from.Add(*length)

	clients := make([]client, *conns)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { clients[i].run(u.Host, request, from, until) })
	}
	time.Sleep(time.Until(from))
	cpu := cpuTime()
	wg.Wait()
	cpu = cpuTime() - cpu
	report(clients, *length, cpu)
}

func requestBytes(method string, u *url.URL, header, body string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, u.RequestURI(), u.Host)
	if header != "" {
		fmt.Fprintf(&b, "%s\r\n", header)
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return []byte(b.String())
}

// client is one connection and what it saw.
type client struct {
	took   []time.Duration // of every good answer, in the measured time or begun in it
	inTime int             // of these, answered before the end
	served int             // answers of any kind, the warm-up's too
	bytes  int64
	bad    map[string]int // by status or failure
}

func (c *client) run(host string, request []byte, from, until time.Time) {
	c.took = make([]time.Duration, 0, 1<<14)
	c.bad = map[string]int{}
	var conn net.Conn
	var in *bufio.Reader
	for {
		start := time.Now()
		if !start.Before(until) {
			break
		}
		if conn == nil {
			var err error
			if conn, err = net.Dial("tcp", host); err != nil {
				c.bad["connect"]++
				time.Sleep(10 * time.Millisecond)
				continue
			}
			in = bufio.NewReaderSize(conn, 64<<10)
		}
		conn.SetDeadline(start.Add(10 * time.Second))
		status, size, keep, err := exchange(conn, in, request)
		end := time.Now()
		measured := !start.Before(from)
		if err == nil {
			c.served++
		}
		switch {
		case err != nil:
			c.bad["broken"]++
		case status < 200 || status > 299:
			c.bad[strconv.Itoa(status)]++
		case measured:
			c.took = append(c.took, end.Sub(start))
			c.bytes += size
			if end.Before(until) {
				c.inTime++
			}
		}
		if err != nil || !keep {
			conn.Close()
			conn = nil
		}
	}
	if conn != nil {
		conn.Close()
	}
}

// exchange sends the request and reads its answer to the end.
func exchange(conn net.Conn, in *bufio.Reader, request []byte) (status int, size int64, keep bool, err error) {
	if _, err = conn.Write(request); err != nil {
		return
	}
	line, err := in.ReadSlice('\n')
	if err != nil {
		return
	}
	if len(line) < 12 {
		return 0, 0, false, io.ErrUnexpectedEOF
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return
	}
	length, chunked := int64(0), false
	keep = true
	for {
		if line, err = in.ReadSlice('\n'); err != nil {
			return
		}
		name, value, ok := strings.Cut(string(line), ":")
		if !ok {
			break
		}
		value = strings.TrimSpace(value)
		switch {
		case strings.EqualFold(name, "Content-Length"):
			if length, err = strconv.ParseInt(value, 10, 64); err != nil {
				return
			}
		case strings.EqualFold(name, "Transfer-Encoding"):
			chunked = strings.EqualFold(value, "chunked")
		case strings.EqualFold(name, "Connection"):
			keep = !strings.EqualFold(value, "close")
		}
	}
	if !chunked {
		_, err = in.Discard(int(length))
		return status, length, keep, err
	}
	for {
		if line, err = in.ReadSlice('\n'); err != nil {
			return
		}
		var chunk int64
		if chunk, err = strconv.ParseInt(strings.TrimSpace(string(line)), 16, 64); err != nil {
			return
		}
		if _, err = in.Discard(int(chunk) + 2); err != nil || chunk == 0 {
			return
		}
		size += chunk
	}
}

func report(clients []client, length, cpu time.Duration) {
	var took []time.Duration
	var inTime, served, failed int
	var bytes int64
	bad := map[string]int{}
	for _, c := range clients {
		took = append(took, c.took...)
		inTime += c.inTime
		served += c.served
		bytes += c.bytes
		for what, n := range c.bad {
			bad[what] += n
			failed += n
		}
	}
	slices.Sort(took)
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"rps":    float64(inTime) / length.Seconds(),
		"p50_ms": quantile(took, 0.50), "p99_ms": quantile(took, 0.99), "max_ms": quantile(took, 1),
		"requests": len(took), "served": served, "bytes": bytes / int64(max(len(took), 1)),
		"errors": failed, "bad": bad,
		"load_cpu_pct": 100 * cpu.Seconds() / length.Seconds(),
	})
}

// quantile is the smallest latency that the share q of all does not exceed.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := int(q*float64(len(sorted))+0.999999) - 1
	return float64(sorted[max(i, 0)].Nanoseconds()) / 1e6
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
