// Streamload listens to a stream of Server-Sent Events as many clients, some of
// which leave and come back with Last-Event-ID, and measures when they hear of
// what happened, and whether anything is lost or told twice. It prints a line
// when everybody listens, and the result as another; then it goes on listening
// until its input ends, so that the server can be looked at meanwhile.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

var (
	stream  = flag.String("url", "", "the stream")
	events  = flag.String("events", "", "where the events are listed, with the time of each")
	publish = flag.String("publish", "", "or where to send them to")
	header  = flag.String("header", "", "of every request, for example Authorization: …")
	count   = flag.Int("clients", 1000, "that listen")
	leavers = flag.Int("leavers", 10, "one of so many leaves and comes back")
	length  = flag.Duration("for", 10*time.Second, "that is measured")
	rate    = flag.Float64("rate", 10, "with -publish: events a second")
	padding = flag.Int("size", 480, "with -publish: bytes of an event, about")
)

// grace is for what is on its way when the time is over.
const grace = 2 * time.Second

func main() {
	log.SetFlags(0)
	log.SetPrefix("streamload: ")
	flag.Parse()
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	at, err := url.Parse(*stream)
	if err != nil {
		return err
	}
	clients, err := connect(at)
	if err != nil {
		return err
	}
	time.Sleep(time.Second) // until everything is calm
	fmt.Println("ready")
	from := time.Now()
	to := from.Add(*length)
	var happened []event
	if *publish != "" {
		happened, err = send(to)
	}
	time.Sleep(time.Until(to) + grace)
	if *publish == "" {
		happened, err = list()
	}
	if err != nil {
		return err
	}
	measured := slices.DeleteFunc(happened, func(e event) bool { return e.At.Before(from) || e.At.After(to) })
	if len(measured) == 0 {
		return errors.New("nothing happened")
	}
	if err := report(clients, measured); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// connect lets everybody in, a hundred at a time, and waits until all have
// been answered.
func connect(at *url.URL) ([]*client, error) {
	var clients []*client
	turn := make(chan struct{}, 100)
	var answered sync.WaitGroup
	for i := range *count {
		c := &client{at: at, leaves: i%*leavers == *leavers-1, answered: make(chan error, 1)}
		clients = append(clients, c)
		turn <- struct{}{}
		go c.listen()
		answered.Go(func() {
			c.failed = <-c.answered
			<-turn
		})
	}
	answered.Wait()
	for _, c := range clients {
		if c.failed != nil {
			return nil, c.failed
		}
	}
	return clients, nil
}

// event is something that happened.
type event struct {
	Seq int64
	At  time.Time
}

// list asks what has happened, and checks that no number is missing.
func list() (all []event, err error) {
	for {
		var page struct {
			Data struct {
				Events  []event
				HasMore bool
			}
		}
		body, err := ask(http.MethodGet, fmt.Sprintf("%s?after_seq=%d&limit=100", *events, len(all)), nil)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, err
		}
		for _, e := range page.Data.Events {
			if e.Seq != int64(len(all)+1) {
				return nil, fmt.Errorf("event %d follows event %d", e.Seq, len(all))
			}
			all = append(all, e)
		}
		if !page.Data.HasMore {
			return all, nil
		}
	}
}

// send makes the events happen.
func send(until time.Time) (all []event, err error) {
	fill := strings.Repeat("x", *padding)
	for now := range time.Tick(time.Duration(float64(time.Second) / *rate)) {
		if now.After(until) {
			return all, nil
		}
		e := event{int64(len(all) + 1), time.Now()}
		form := url.Values{"topic": {"run"}, "data": {fmt.Sprintf(`{"type":"progress","seq":%d,"padding":%q}`, e.Seq, fill)}}
		if _, err := ask(http.MethodPost, *publish, form); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return nil, nil
}

func ask(method, url string, form url.Values) ([]byte, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if name, value, ok := strings.Cut(*header, ": "); ok {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(bufio.NewReader(resp.Body))
	if err == nil && resp.StatusCode > 299 {
		err = fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, body)
	}
	return body, err
}

// report writes what everybody heard. Times are those of clients that stayed.
func report(clients []*client, measured []event) error {
	var took, spread []float64
	first := map[int64]time.Time{} // when anybody heard so far
	sum := map[string]int{}
	for _, c := range clients {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, f := range c.heard {
			if t, ok := first[f.seq]; !ok || f.at.Before(t) {
				first[f.seq] = f.at
			}
		}
	}
	from, to := measured[0], measured[len(measured)-1]
	for _, c := range clients {
		for what, n := range c.count {
			sum[what] += n
		}
		if c.heard[len(c.heard)-1].seq < to.Seq {
			sum["lost"]++
		}
		if c.leaves {
			continue
		}
		k := 0
		for _, e := range measured {
			for k < len(c.heard) && c.heard[k].seq < e.Seq {
				k++
			}
			if k == len(c.heard) {
				break
			}
			took = append(took, ms(c.heard[k].at.Sub(e.At)))
		}
		for _, f := range c.heard {
			if f.seq >= from.Seq && f.seq <= to.Seq {
				spread = append(spread, ms(f.at.Sub(first[f.seq])))
			}
		}
	}
	slices.Sort(took)
	slices.Sort(spread)
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"clients": len(clients), "events": len(measured), "frames": sum["frames"],
		"events_s": float64(len(measured)-1) / to.At.Sub(from.At).Seconds(),
		"frames_s": float64(len(spread)) / float64(len(clients) - len(clients) / *leavers) / to.At.Sub(from.At).Seconds(),
		"p50_ms":   quantile(took, 0.5), "p99_ms": quantile(took, 0.99), "spread_p99_ms": quantile(spread, 0.99),
		"lost": sum["lost"], "repeated": sum["repeated"], "caught_up": sum["caught up"], "came_back": sum["came back"], "errors": sum["errors"],
	})
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}
