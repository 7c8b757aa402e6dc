package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"orderonce/scripts/local/console/watch"
)

const (
	silence = 15 * time.Second // after which a feed without a change sends a comment
	maxForm = 1 << 10          // bytes of a request
)

type handler struct {
	Options

	page []byte
	run  string // identifies this start, without revealing the token
}

// NewHandler returns what Serve serves. It returns an error if Options.Token is empty:
// then every request could change the system.
func NewHandler(o Options) (http.Handler, error) {
	if o.Token == "" {
		return nil, errors.New("token of the page: empty")
	}
	sum := sha256.Sum256([]byte(o.Token))
	h := &handler{Options: o, run: hex.EncodeToString(sum[:4])}
	if err := h.render(); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { send(w, "text/html", h.page) })
	for name, kind := range map[string]string{
		"console.js": "text/javascript", "console.css": "text/css", "icon.svg": "image/svg+xml",
	} {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) { send(w, kind, text) })
	}
	mux.HandleFunc("GET /feed", h.follow)
	mux.HandleFunc("GET /orders/{id}", h.timeline)
	mux.HandleFunc("POST /acts/{name}", h.act)
	return protect(mux), nil
}

// render makes the page once: everything that changes comes with the feed.
func (h *handler) render() error {
	page, err := template.ParseFS(files, "page.html")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	err = page.Execute(&b, map[string]any{
		"Token": h.Token, "Run": h.run, "Groups": h.Attacks, "Guards": h.Guards,
	})
	h.page = b.Bytes()
	return err
}

// follow sends the pictures as server-sent events until the client leaves, and a comment
// after a silence. A client that followed an earlier start gets 204, which ends its
// attempts.
func (h *handler) follow(w http.ResponseWriter, r *http.Request) {
	if run := r.URL.Query().Get("run"); run != "" && run != h.run {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	client, last, quiet := http.NewResponseController(w), uint64(0), time.Duration(0)
	for r.Context().Err() == nil {
		text := []byte(nil)
		if picture, number := h.Picture(); number != last {
			data, _ := json.Marshal(picture) // no type in it has a value that does not encode
			text, last = fmt.Appendf(nil, "event: picture\ndata: %s\n\n", data), number
		} else if quiet >= silence {
			text = []byte(": no news\n\n")
		}
		if text != nil {
			if _, err := w.Write(text); err != nil || client.Flush() != nil {
				return
			}
			quiet = 0
		}
		next, cancel := context.WithTimeout(r.Context(), watch.Tick)
		<-next.Done()
		cancel()
		quiet += watch.Tick
	}
}

func (h *handler) timeline(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	timeline, ok := h.Timeline(id)
	if !ok {
		sendError(w, http.StatusNotFound, fmt.Errorf("order %q: %w", id, ErrUnknown))
		return
	}
	if timeline.Entries == nil {
		timeline.Entries = []watch.Entry{} // a list, not null
	}
	sendJSON(w, http.StatusOK, timeline)
}

func send(w http.ResponseWriter, kind string, text []byte) {
	w.Header().Set("Content-Type", kind+"; charset=utf-8")
	_, _ = w.Write(text) // the client has gone
}

func sendJSON(w http.ResponseWriter, status int, v any) {
	text, _ := json.Marshal(v) // no type here has a value that does not encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client has gone
}

func sendError(w http.ResponseWriter, status int, err error) {
	sendJSON(w, status, map[string]string{"error": err.Error()})
}
