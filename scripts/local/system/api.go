package system

import (
	"context"
	"time"

	"orderonce/adapters/apigateway/apigatewaytest"
)

func (s *System) startAPI(context.Context) (err error) {
	api := &apigatewaytest.API{
		Routes: map[string]func(context.Context, []byte) ([]byte, error){}, Now: time.Now,
		Authorizers: map[string]apigatewaytest.Authorizer{},
	}
	if s.Webhook != nil {
		api.Routes["POST /stripe/webhook"] = s.Webhook.Invoke
	}
	s.routeIntake(api)
	if len(api.Routes) == 0 {
		return nil
	}
	if s.API, err = apigatewaytest.Serve(api); err == nil {
		s.closers = append(s.closers, s.API.Close)
	}
	return err
}
