package stripetest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// ErrLost is the error of RoundTrip for a response that is Lost.
var ErrLost = errors.New("connection lost")

// RoundTrip carries an HTTP request to do, such as the Do of a Machine, without a socket.
func RoundTrip(r *http.Request, do func(Request) Response) (*http.Response, error) {
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	response := do(requestOf(r))
	if response.Lost {
		return nil, ErrLost
	}
	body := response.Body()
	return &http.Response{
		StatusCode: response.Status, Header: response.Header(), Request: r,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}
