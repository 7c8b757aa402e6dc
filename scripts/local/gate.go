package main

import (
	"errors"
	"io"
	"log"
	"net/http/httputil"
	"net/url"
	"strings"

	"orderonce/scripts/local/console"
	"orderonce/scripts/local/system"
)

// gate serves the system at the ports of `local up`. Engine and doubles listen on free
// ports behind it: any page in the visitor's browser can guess a known port, and the
// engine answers every origin.
type gate struct {
	servers []*console.Server
	urls    []string // of what is behind the gate, each followed by its URL at the gate
}

// openGate serves a started system. An engine that ran already keeps its address.
func (u up) openGate(s *system.System) (*gate, error) {
	g := new(gate)
	for _, behind := range []struct {
		flag, target string
		port         int
	}{
		{"sqs-port", s.SQS.URL, u.SQS},
		{"stripe-port", s.Stripe.URL, u.Stripe},
		{"api-port", s.API.URL, u.API},
		{"dynamodb-port", s.Engine.Endpoint, u.DynamoDB},
	} {
		if behind.target == s.Options.Engine.Endpoint {
			continue
		}
		if err := g.serve(behind.port, behind.target); err != nil {
			return nil, errors.Join(inUse(behind.flag, err), g.Close())
		}
	}
	return g, nil
}

func (g *gate) serve(port int, target string) error {
	to, err := url.Parse(target)
	if err != nil {
		return err
	}
	server, err := console.Listen(port, console.LocalOnly(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // signed by the client
		},
		ErrorLog: log.New(io.Discard, "", 0), // the client gets 502
	}))
	if err != nil {
		return err
	}
	g.servers, g.urls = append(g.servers, server), append(g.urls, target, server.URL)
	return nil
}

// outside returns text with the URLs at the gate instead of those behind it.
func (g *gate) outside(text string) string { return strings.NewReplacer(g.urls...).Replace(text) }

// Close ends the gate.
func (g *gate) Close() error {
	var errs []error
	for _, s := range g.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
