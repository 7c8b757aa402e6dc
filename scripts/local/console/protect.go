package console

import (
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
)

// policy allows what the page loads from its own origin, and nothing inline. No other
// page may frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// LocalOnly keeps other pages in the visitor's browser from using a server: it refuses
// requests that were sent by another origin, and those for a name other than this
// machine's, which a name server of an attacker may point here.
func LocalOnly(next http.Handler) http.Handler {
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sendError(w, http.StatusForbidden, errors.New("request of another origin"))
	}))
	next = sameOrigin.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.Host) {
			sendError(w, http.StatusForbidden, errors.New("host: want 127.0.0.1 or localhost"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// protect is LocalOnly for the page, with the headers that tell the browser what the page
// may do.
func protect(next http.Handler) http.Handler {
	next = LocalOnly(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// isLocal reports whether a Host header names this machine, at any port: a tunnel may use
// another one.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil { // without a port
		name = host
	}
	return name == "127.0.0.1" || name == "localhost"
}

// act changes the system. The request needs the token, which only a reader of the page
// knows.
func (h *handler) act(w http.ResponseWriter, r *http.Request) {
	token := r.Header.Get("X-Console-Token")
	if subtle.ConstantTimeCompare([]byte(token), []byte(h.Token)) != 1 {
		sendError(w, http.StatusForbidden, errors.New("wrong token: reload the page"))
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		sendError(w, http.StatusBadRequest, err)
		return
	}
	result, err := h.Act(r.Context(), r.PathValue("name"), r.PostFormValue("value"))
	switch {
	case errors.Is(err, ErrUnknown):
		sendError(w, http.StatusNotFound, err)
	case errors.Is(err, ErrNotNow):
		sendError(w, http.StatusConflict, err)
	case err != nil:
		sendError(w, http.StatusInternalServerError, err)
	default:
		sendJSON(w, http.StatusOK, result)
	}
}
