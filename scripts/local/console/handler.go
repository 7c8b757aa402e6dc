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
	"slices"
	"strconv"
	"time"

	"orderonce/scripts/local/console/watch"
)

const (
	silence = 15 * time.Second // after which a feed without a change sends a comment
	maxForm = 1 << 10          // bytes of a request
)

// Errors of requests. Each has a status of its own.
var (
	errUnknown   = errors.New("not found")
	errMalformed = errors.New("malformed request")
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
	mux.Handle("POST /attacks/{name}", h.change(h.attack))
	mux.Handle("POST /guards", h.change(h.guard))
	mux.Handle("POST /storm", h.change(h.storm))
	mux.Handle("POST /pace", h.change(h.pace))
	return protect(mux), nil
}

// group is a heading with its attacks.
type group struct {
	Name    string
	Attacks []Attack
}

// render makes the page once: everything that changes comes with the feed.
func (h *handler) render() error {
	page, err := template.ParseFS(files, "page.html")
	if err != nil {
		return err
	}
	var groups []group
	for _, a := range h.Attacks {
		if last := len(groups) - 1; last < 0 || groups[last].Name != a.Group {
			groups = append(groups, group{Name: a.Group})
		}
		last := &groups[len(groups)-1]
		last.Attacks = append(last.Attacks, a)
	}
	var b bytes.Buffer
	err = page.Execute(&b, map[string]any{"Token": h.Token, "Run": h.run, "Groups": groups, "Guards": h.Guards})
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
	client, last := http.NewResponseController(w), uint64(0)
	for {
		limited, cancel := context.WithTimeout(r.Context(), silence)
		picture, number, err := h.Feed.Next(limited, last)
		cancel()
		if r.Context().Err() != nil {
			return
		}
		text := []byte(": no news\n\n")
		if err == nil {
			data, _ := json.Marshal(picture) // no type in it has a value that does not encode
			text = fmt.Appendf(nil, "event: picture\ndata: %s\n\n", data)
		}
		if _, err := w.Write(text); err != nil || client.Flush() != nil {
			return
		}
		last = number
	}
}

func (h *handler) timeline(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	timeline, ok := h.Timeline(id)
	if !ok {
		sendError(w, http.StatusNotFound, fmt.Errorf("order %q: %w", id, errUnknown))
		return
	}
	if timeline.Entries == nil {
		timeline.Entries = []watch.Entry{} // a list, not null
	}
	sendJSON(w, http.StatusOK, timeline)
}

func (h *handler) attack(r *http.Request) (Result, error) {
	name := r.PathValue("name")
	if !slices.ContainsFunc(h.Attacks, func(a Attack) bool { return a.Name == name }) {
		return Result{}, fmt.Errorf("attack %q: %w", name, errUnknown)
	}
	return h.Actions.Attack(r.Context(), name)
}

func (h *handler) guard(r *http.Request) (Result, error) {
	name := r.PostFormValue("name")
	if name != "" && !slices.ContainsFunc(h.Guards, func(g Guard) bool { return g.Name == name }) {
		return Result{}, fmt.Errorf("guard %q: %w", name, errUnknown)
	}
	return h.Actions.Guard(r.Context(), name)
}

func (h *handler) storm(r *http.Request) (Result, error) {
	on, err := strconv.ParseBool(r.PostFormValue("on"))
	if err != nil {
		return Result{}, fmt.Errorf("%w: on: want true or false", errMalformed)
	}
	seed, err := strconv.ParseUint(r.PostFormValue("seed"), 10, 64)
	if on && err != nil {
		return Result{}, fmt.Errorf("%w: seed: want a whole number, 0 or more", errMalformed)
	}
	return h.Actions.Storm(r.Context(), on, seed)
}

func (h *handler) pace(r *http.Request) (Result, error) {
	slow, err := strconv.ParseBool(r.PostFormValue("slow"))
	if err != nil {
		return Result{}, fmt.Errorf("%w: slow: want true or false", errMalformed)
	}
	return h.Actions.Pace(r.Context(), slow)
}

// send answers with a file of the page.
func send(w http.ResponseWriter, kind string, text []byte) {
	w.Header().Set("Content-Type", kind+"; charset=utf-8")
	_, _ = w.Write(text) // the client has gone
}

func sendJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil { // no type here has a value that does not encode
		status, text = http.StatusInternalServerError, []byte(`{"error":"response does not encode"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client has gone
}

func sendError(w http.ResponseWriter, status int, err error) {
	sendJSON(w, status, map[string]string{"error": err.Error()})
}
