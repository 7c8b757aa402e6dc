package receipt

import (
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"strings"
	texttemplate "text/template"
)

// A language has two files: NAME.txt with the templates "subject" and "text", and
// NAME.html. Those of a refund are refund.NAME.txt and refund.NAME.html.
//
//go:embed templates
var templates embed.FS

// languages are those of the templates. The first is for payers who prefer none of them.
func languages() []string { return []string{"en", "de"} }

// Renderer writes the messages. It is safe for concurrent use, and expensive to create.
type Renderer struct {
	text map[string]*texttemplate.Template
	html map[string]*htmltemplate.Template
}

// NewRenderer parses the templates.
func NewRenderer() (*Renderer, error) {
	r := &Renderer{map[string]*texttemplate.Template{}, map[string]*htmltemplate.Template{}}
	for _, l := range languages() {
		if err := errors.Join(r.parse(l), r.parse(refundTemplates(l))); err != nil {
			return nil, fmt.Errorf("parse the templates of language %s: %w", l, err)
		}
	}
	return r, nil
}

func (n *Renderer) parse(name string) error {
	var err, htmlErr error
	n.text[name], err = texttemplate.ParseFS(templates, "templates/"+name+".txt")
	n.html[name], htmlErr = htmltemplate.ParseFS(templates, "templates/"+name+".html")
	return errors.Join(err, htmlErr)
}

func refundTemplates(language string) string { return "refund." + language }

// content is what the templates show. Amount has digits and the currency's code, such as
// "39.98 USD", which reads the same everywhere; Date is in ISO 8601.
type content struct{ Order, Refund, Amount, Date string }

var errSubject = errors.New("subject with a line break: it would add a header")

// Render writes a message in the first of the payer's languages that has templates.
func (n *Renderer) Render(r Request, p Payer) (Mail, error) {
	name := languageOf(p.Locales)
	if r.Key.Refund() != "" {
		name = refundTemplates(name)
	}
	c := content{
		Order: string(r.OrderID), Refund: r.Key.Refund(), Amount: r.Total.String(),
		Date: r.At.UTC().Format("2006-01-02"),
	}
	var subject, text, html strings.Builder
	if err := errors.Join(
		n.text[name].ExecuteTemplate(&subject, "subject", c),
		n.text[name].ExecuteTemplate(&text, "text", c),
		n.html[name].Execute(&html, c),
	); err != nil {
		return Mail{}, fmt.Errorf("render receipt %s of order %s from %s: %w", r.Key, r.OrderID, name, err)
	}
	if strings.ContainsAny(subject.String(), "\r\n") {
		return Mail{}, fmt.Errorf("render receipt %s of order %s: %w", r.Key, r.OrderID, errSubject)
	}
	return Mail{
		To: p.Address, Subject: subject.String(), Text: text.String(), HTML: html.String(),
		OrderID: r.OrderID, Key: r.Key,
	}, nil
}

// languageOf returns the first language of the locales that has templates.
func languageOf(locales []string) string {
	for _, locale := range locales {
		primary, _, _ := strings.Cut(strings.ToLower(locale), "-")
		for _, l := range languages() {
			if l == primary {
				return l
			}
		}
	}
	return languages()[0]
}
