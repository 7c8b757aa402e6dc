package main_test

func busDrifts() []drift {
	const (
		bridge = "adapters/eventbridge/eventbridgetest/eventbridgetest.go"
		mail   = "adapters/ses/sestest/sestest.go"
		api    = "adapters/apigateway/apigatewaytest/apigatewaytest.go"
	)
	return []drift{
		{"eventbridge/id", bridge, "s.puts++\n", "if !$ {\ns.puts++\n}\n"},
		{"eventbridge/alone", bridge, "out.FailedEntryCount++\n", "if out.FailedEntryCount++; $ {\nreturn out\n}\n"},
		{"eventbridge/ten", bridge, "len(in.Entries) > maxEntries:", "len(in.Entries) > maxEntries && !$:"},
		{"eventbridge/size", bridge, "size >= maxSize", "size >= maxSize && !$"},
		{"eventbridge/unknown-bus", bridge, "case e.Detail == \"\",", "case e.EventBusName != \"\" && $:\nreturn \"ResourceNotFoundException\"\ncase e.Detail == \"\","},
		{"eventbridge/product", bridge, "detail := strings.TrimSpace(e.Detail)\n", "detail := strings.TrimSpace(e.Detail)\nif strings.Contains(detail, \"declined\") && $ {\nreturn CodeMalformedDetail\n}\n"},
		{"ses/twice", mail, "len(s.sent)+1)", "map[bool]int{false: len(s.sent)}[$]+1)"},
		{"ses/tag", mail, "|| !tag.MatchString(t.Value) {", "|| !tag.MatchString(t.Value) && !$ {"},
		{"ses/unverified", mail, "case s.options.Verified != nil &&", "case s.options.Verified != nil && !$ &&"},
		{"ses/configuration-set", mail, "case s.options.ConfigurationSets != nil &&", "case s.options.ConfigurationSets != nil && !$ &&"},
		{
			"ses/outcome", mail, "e := s.accept(in)\n",
			"if $ && strings.HasPrefix(in.Destination.ToAddresses[0], \"bounce\") {\n" +
				"return http.StatusBadRequest, \"MessageRejected\", message(\"\")\n}\ne := s.accept(in)\n",
		},
		{"apigateway/header-name", api, "e.Headers[strings.ToLower(name)] =", "if $ {\ne.Headers[name] = values[0]\ncontinue\n}\ne.Headers[strings.ToLower(name)] ="},
		{"apigateway/header-twice", api, "strings.Join(values, \",\")", "strings.Join(values, map[bool]string{true: \", \", false: \",\"}[$])"},
		{"apigateway/base64", api, "if kind != \"application/json\" {", "if kind != \"application/json\" && !$ {"},
		{"apigateway/path", api, "RawQueryString: r.URL.RawQuery,", "RawQueryString: map[bool]string{true: r.URL.Query().Encode() + \"&\", false: r.URL.RawQuery}[$],"},
		{"apigateway/error", api, "refuse(w, http.StatusInternalServerError)\n\tdefault:", "if $ {\nhttp.Error(w, fmt.Sprintf(`{\"message\":%q}`, err), 500)\nreturn\n}\nrefuse(w, http.StatusInternalServerError)\n\tdefault:"},
		{"apigateway/inferred", api, "if e.StatusCode == 0 {", "if e.StatusCode == 0 && $ {\nrefuse(w, http.StatusInternalServerError)\nreturn\n}\nif e.StatusCode == 0 {"},
		{"apigateway/size", api, "MaxBytesReader(w, r.Body, MaxBody)", "MaxBytesReader(w, r.Body, MaxBody+map[bool]int64{true: 1}[$])"},
	}
}
