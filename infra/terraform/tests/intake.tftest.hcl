mock_provider "aws" {
  source = "./tests/mocks"
}

# Distinct values, so that a part of the webhook's API fails.
override_resource {
  target = aws_apigatewayv2_api.orders
  values = {
    id            = "orders"
    api_endpoint  = "https://orders.execute-api.eu-west-1.amazonaws.com"
    execution_arn = "arn:aws:execute-api:eu-west-1:123456789012:orders"
  }
}

override_resource {
  target = aws_apigatewayv2_authorizer.intake
  values = { id = "authorizer" }
}

override_resource {
  target = aws_sqs_queue.orders
  values = {
    arn = "arn:aws:sqs:eu-west-1:123456789012:orders"
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
  }
}

variables {
  create_intake = true
}

run "without_the_variable_there_is_no_entrance_by_http" {
  variables {
    create_intake = null
    intake_jwt    = { issuer = "https://issuer.invalid", audience = ["shop"] }
  }

  assert {
    condition = alltrue([for resources in [
      aws_apigatewayv2_api.orders, aws_apigatewayv2_integration.intake, aws_apigatewayv2_authorizer.intake,
      aws_apigatewayv2_stage.orders, aws_cloudwatch_log_group.intake_access, aws_iam_role_policy.intake,
    ] : length(resources) == 0])
    error_message = "create_intake: must be off by default"
  }

  assert {
    condition = alltrue([for resources in [
      aws_apigatewayv2_route.intake, aws_lambda_permission.intake,
    ] : length(resources) == 0])
    error_message = "create_intake: a route or a permission exists"
  }

  assert {
    condition = alltrue([for resources in [
      aws_lambda_function.functions, aws_lambda_alias.live, aws_iam_role.functions,
      aws_cloudwatch_log_group.functions,
    ] : keys(resources) == ["order", "publish", "reconcile", "webhook"]])
    error_message = "create_intake: a part of the function exists"
  }

  assert {
    condition = alltrue([for value in [
      output.intake_url, output.intake_caller_policy, output.intake_access_log_group,
    ] : value == null])
    error_message = "outputs: must be null without the API"
  }
}

run "the_api_has_three_routes_and_none_is_open" {
  assert {
    condition = jsonencode({ for route in aws_apigatewayv2_route.intake :
      route.route_key => route.authorization_type
      }) == jsonencode({
      "GET /orders/{orderId}" = "AWS_IAM"
      "POST /orders"          = "AWS_IAM"
      "PUT /orders/{orderId}" = "AWS_IAM"
    })
    error_message = "routes: must be these, each with IAM authorization"
  }

  assert {
    condition = (
      length(aws_apigatewayv2_authorizer.intake) == 0
      && alltrue([for route in aws_apigatewayv2_route.intake : route.authorizer_id == null])
    )
    error_message = "authorizer: IAM needs none"
  }

  assert {
    condition = alltrue([for route in aws_apigatewayv2_route.intake :
      route.target == "integrations/${aws_apigatewayv2_integration.intake[0].id}"
    ])
    error_message = "routes: must go to the integration"
  }

  assert {
    condition = alltrue([for part in concat(
      [aws_apigatewayv2_integration.intake[0].api_id, aws_apigatewayv2_stage.orders[0].api_id],
      [for route in aws_apigatewayv2_route.intake : route.api_id],
    ) : part == "orders"])
    error_message = "api_id: a part belongs to another API"
  }

  assert {
    condition = (
      aws_apigatewayv2_api.orders[0].protocol_type == "HTTP"
      && length(aws_apigatewayv2_api.orders[0].cors_configuration) == 0
    )
    error_message = "API: must be an HTTP API without CORS, because no browser calls it"
  }

  assert {
    condition = (
      aws_apigatewayv2_stage.orders[0].name == "$default" && aws_apigatewayv2_stage.orders[0].auto_deploy
      && output.intake_url == "https://orders.execute-api.eu-west-1.amazonaws.com/orders"
    )
    error_message = "stage, intake_url: must be $default, deployed automatically, or the URL does not work"
  }
}

# The URL of the webhook is registered at Stripe.
run "the_webhooks_api_is_another_one" {
  assert {
    condition = (
      aws_apigatewayv2_route.webhook[0].api_id == "a1b2c3d4e5"
      && output.webhook_url == "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com/stripe/webhook"
    )
    error_message = "webhook_url: must not change"
  }
}

run "the_api_invokes_the_alias_with_payload_format_2" {
  assert {
    condition = (
      aws_apigatewayv2_integration.intake[0].integration_uri == aws_lambda_alias.live["intake"].invoke_arn
      && aws_apigatewayv2_integration.intake[0].integration_type == "AWS_PROXY"
      && aws_apigatewayv2_integration.intake[0].integration_method == "POST"
    )
    error_message = "integration: must invoke the alias live"
  }

  assert {
    condition     = aws_apigatewayv2_integration.intake[0].payload_format_version == "2.0"
    error_message = "payload_format_version: the function reads 2.0 only"
  }
}

run "only_the_routes_may_invoke_the_function" {
  assert {
    condition = jsonencode({ for p in aws_lambda_permission.intake :
      p.statement_id => p.source_arn
      }) == jsonencode({
      IntakeGet  = "arn:aws:execute-api:eu-west-1:123456789012:orders/$default/GET/orders/{orderId}"
      IntakePost = "arn:aws:execute-api:eu-west-1:123456789012:orders/$default/POST/orders"
      IntakePut  = "arn:aws:execute-api:eu-west-1:123456789012:orders/$default/PUT/orders/{orderId}"
    })
    error_message = "permissions: must be one for each route"
  }

  assert {
    condition = alltrue([for p in aws_lambda_permission.intake : (
      p.principal == "apigateway.amazonaws.com" && p.action == "lambda:InvokeFunction"
      && p.function_name == "orderonce-dev-intake" && p.qualifier == "live"
    )])
    error_message = "permissions: must allow API Gateway to invoke the alias, and nothing else"
  }
}

run "tokens_can_replace_iam" {
  variables {
    intake_jwt = { issuer = "https://issuer.invalid/pool", audience = ["shop", "app"] }
  }

  assert {
    condition = alltrue([for route in aws_apigatewayv2_route.intake :
      route.authorization_type == "JWT" && route.authorizer_id == "authorizer"
    ]) && length(aws_apigatewayv2_route.intake) == 3
    error_message = "routes: each must require a token"
  }

  assert {
    condition = (
      aws_apigatewayv2_authorizer.intake[0].authorizer_type == "JWT"
      && aws_apigatewayv2_authorizer.intake[0].api_id == "orders"
      && aws_apigatewayv2_authorizer.intake[0].identity_sources == toset(["$request.header.Authorization"])
      && aws_apigatewayv2_authorizer.intake[0].jwt_configuration[0].issuer == "https://issuer.invalid/pool"
      && aws_apigatewayv2_authorizer.intake[0].jwt_configuration[0].audience == toset(["app", "shop"])
    )
    error_message = "authorizer: must accept tokens of the issuer, for the audiences"
  }

  assert {
    condition     = aws_lambda_function.functions["intake"].environment[0].variables.OWNER_CLAIM == "client_id"
    error_message = "OWNER_CLAIM: callers would see the orders of all others, or a person would name prices"
  }

  assert {
    condition = (
      alltrue([for route in aws_apigatewayv2_route.intake : length(route.authorization_scopes) == 0])
      && !contains(keys(aws_lambda_function.functions["intake"].environment[0].variables), "CUSTOMER_CLAIM")
    )
    error_message = "scopes and CUSTOMER_CLAIM: nobody has asked for them"
  }

  assert {
    condition     = output.intake_caller_policy == null
    error_message = "intake_caller_policy: a caller with a token needs none"
  }
}

run "tokens_can_need_a_scope_and_claims" {
  command = plan

  variables {
    intake_jwt = {
      issuer               = "https://issuer.invalid"
      audience             = ["shop"]
      authorization_scopes = ["orders/put"]
      owner_claim          = "tenant"
      customer_claim       = "payer"
    }
  }

  assert {
    condition = (
      aws_lambda_function.functions["intake"].environment[0].variables.OWNER_CLAIM == "tenant"
      && aws_lambda_function.functions["intake"].environment[0].variables.CUSTOMER_CLAIM == "payer"
    )
    error_message = "intake_jwt: owner_claim or customer_claim is ignored"
  }

  assert {
    condition = length(aws_apigatewayv2_route.intake) == 3 && alltrue([
      for route in aws_apigatewayv2_route.intake : route.authorization_scopes == toset(["orders/put"])
    ])
    error_message = "authorization_scopes: every route must require one"
  }
}

run "requests_are_throttled" {
  command = plan

  assert {
    condition = (
      aws_apigatewayv2_stage.orders[0].default_route_settings[0].throttling_burst_limit == 100
      && aws_apigatewayv2_stage.orders[0].default_route_settings[0].throttling_rate_limit == 50
    )
    error_message = "throttling: must be 100 at once and 50 per second by default"
  }
}

run "throttling_can_be_changed" {
  command = plan

  variables {
    intake_burst_limit = 20
    intake_rate_limit  = 10
  }

  assert {
    condition = (
      aws_apigatewayv2_stage.orders[0].default_route_settings[0].throttling_burst_limit == 20
      && aws_apigatewayv2_stage.orders[0].default_route_settings[0].throttling_rate_limit == 10
      && aws_apigatewayv2_stage.webhook[0].default_route_settings[0].throttling_rate_limit == 50
    )
    error_message = "intake_burst_limit, intake_rate_limit: must apply to this API only"
  }
}

run "concurrency_can_be_reserved_for_this_function_only" {
  command = plan

  variables {
    intake_reserved_concurrency = 10
  }

  assert {
    condition = { for name, function in aws_lambda_function.functions : name => function.reserved_concurrent_executions
      if function.reserved_concurrent_executions != null
    } == { intake = 10 }
    error_message = "intake_reserved_concurrency: must apply to this function only"
  }
}

run "access_logs_have_no_body_header_path_or_query_string" {
  assert {
    condition = sort(values(
      jsondecode(aws_apigatewayv2_stage.orders[0].access_log_settings[0].format)
      )) == sort([
      "$context.requestId", "$context.requestTime", "$context.identity.sourceIp",
      "$context.routeKey", "$context.status", "$context.error.message",
      "$context.responseLatency", "$context.integrationStatus", "$context.integrationLatency",
      "$context.integrationErrorMessage",
    ])
    error_message = "access logs: another field may contain customer data, a token or a signature"
  }

  assert {
    condition = (
      aws_apigatewayv2_stage.orders[0].access_log_settings[0].destination_arn
      == "arn:aws:logs:eu-west-1:123456789012:log-group:intake-access"
      && aws_cloudwatch_log_group.intake_access[0].name == "/aws/vendedlogs/orderonce-dev-intake-access"
      && output.intake_access_log_group == "/aws/vendedlogs/orderonce-dev-intake-access"
      && aws_cloudwatch_log_group.intake_access[0].retention_in_days == 90
      && aws_cloudwatch_log_group.functions["intake"].retention_in_days == 90
    )
    error_message = "access logs: must go to their own group, and expire"
  }
}

run "the_function_has_no_access_to_stripe" {
  assert {
    condition = aws_lambda_function.functions["intake"].environment[0].variables == tomap({
      ORDERS_TABLE = "orderonce-dev-orders"
      QUEUE_URL    = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
      SCOPE        = "orderonce-dev-836569"
    })
    error_message = "environment: differs from docs/reference/configuration.md"
  }

  assert {
    condition = startswith(
      aws_lambda_function.functions["intake"].description, "Accepts orders by HTTP. Zip ",
    )
    error_message = "description: must not contain the version of the Stripe key, which the function has not"
  }

  assert {
    condition = (
      aws_lambda_function.functions["intake"].timeout == 15
      && aws_lambda_function.functions["intake"].memory_size == 256
      && aws_lambda_function.functions["intake"].reserved_concurrent_executions == null
      && aws_lambda_function.functions["intake"].source_code_hash
      == filebase64sha256("tests/packages/intake.zip")
    )
    error_message = "function: must be intake.zip with 15 s, half of what an HTTP API waits, and 256 MB"
  }
}

run "the_role_allows_exact_actions_on_exact_arns" {
  assert {
    condition = jsonencode({ for s in jsondecode(aws_iam_role_policy.intake[0].policy).Statement :
      s.Sid => [s.Effect, flatten([s.Action]), flatten([s.Resource])]
      }) == jsonencode({
      FindRegisteredOrders = [
        "Allow", ["dynamodb:Query"], ["arn:aws:dynamodb:eu-west-1:123456789012:table/table"],
      ]
      RegisterOrders = [
        "Allow", ["dynamodb:PutItem"], ["arn:aws:dynamodb:eu-west-1:123456789012:table/table"],
      ]
      MarkSentOrders = [
        "Allow", ["dynamodb:UpdateItem"], ["arn:aws:dynamodb:eu-west-1:123456789012:table/table"],
      ]
      SendRegisteredOrders = [
        "Allow", ["sqs:SendMessage"], ["arn:aws:sqs:eu-west-1:123456789012:orders"],
      ]
      WriteIntakeLogs = [
        "Allow", ["logs:CreateLogStream", "logs:PutLogEvents"],
        ["${aws_cloudwatch_log_group.functions["intake"].arn}:log-stream:*"],
      ]
    })
    error_message = "explain changes in docs/reference/iam.md: got ${aws_iam_role_policy.intake[0].policy}"
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.intake[0].policy).Statement :
      s.Condition["ForAllValues:StringEquals"]["dynamodb:Attributes"]
      if contains(["RegisterOrders", "MarkSentOrders"], s.Sid)
      ] == [
      ["orderId", "sk", "fingerprint", "amount", "currency", "caller", "createdAt", "openShard", "dueAt"],
      ["orderId", "sk", "openShard", "dueAt"],
    ]
    error_message = "RegisterOrders, MarkSentOrders: the function could write an order"
  }

  assert {
    condition = (
      aws_iam_role_policy.intake[0].role == aws_iam_role.functions["intake"].id
      && aws_iam_role.functions["intake"].name == "orderonce-dev-intake"
    )
    error_message = "role: the function must have its own, with this policy"
  }
}

run "only_tracing_allows_actions_on_any_resource" {
  variables {
    tracing = true
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.intake[0].policy).Statement :
      flatten([s.Action]) if contains(flatten([s.Resource]), "*")
    ] == [["xray:PutTraceSegments", "xray:PutTelemetryRecords"]]
    error_message = "only X-Ray's actions, which support no resources, may have Resource *"
  }
}

run "a_caller_may_call_the_three_routes" {
  assert {
    condition = jsonencode([for s in jsondecode(output.intake_caller_policy).Statement :
      [s.Effect, s.Action, sort(s.Resource)]
      ]) == jsonencode([["Allow", "execute-api:Invoke", [
        "arn:aws:execute-api:eu-west-1:123456789012:orders/$default/GET/orders/*",
        "arn:aws:execute-api:eu-west-1:123456789012:orders/$default/POST/orders",
        "arn:aws:execute-api:eu-west-1:123456789012:orders/$default/PUT/orders/*",
    ]]])
    error_message = "intake_caller_policy: got ${coalesce(output.intake_caller_policy, "null")}"
  }
}

run "while_no_producer_is_listed_the_queue_policy_names_nobody" {
  assert {
    condition     = [for s in jsondecode(aws_sqs_queue_policy.orders.policy).Statement : s.Effect] == ["Deny"]
    error_message = "queue policy: must only deny while no producer is listed"
  }
}

run "once_a_producer_is_listed_the_function_is_one_too" {
  variables {
    producer_arns = ["arn:aws:iam::123456789012:role/shop"]
  }

  assert {
    condition = jsonencode([for s in jsondecode(aws_sqs_queue_policy.orders.policy).Statement :
      try(s.Condition.ArnNotEquals["aws:PrincipalArn"], s.Principal.AWS)
      if contains(["ProducersSendOrders", "DenyOtherSenders"], s.Sid)
      ]) == jsonencode([
      ["arn:aws:iam::123456789012:role/shop", aws_iam_role.functions["intake"].arn],
      ["arn:aws:iam::123456789012:role/shop", aws_iam_role.functions["intake"].arn],
    ])
    error_message = "queue policy: the intake function may not send, so every order by HTTP gets a 503"
  }
}

run "with_only_a_rule_listed_the_function_may_send_too" {
  variables {
    producer_rule_arns = ["arn:aws:events:eu-west-1:123456789012:rule/shop/orders"]
  }

  assert {
    condition = [for s in jsondecode(aws_sqs_queue_policy.orders.policy).Statement :
      s.Condition.ArnNotEquals["aws:PrincipalArn"] if s.Sid == "DenyOtherSenders"
    ] == [[aws_iam_role.functions["intake"].arn]]
    error_message = "queue policy: the intake function may not send, so every order by HTTP gets a 503"
  }
}

run "alarms_read_the_api_and_the_function" {
  assert {
    condition = jsonencode({ for name, alarm in aws_cloudwatch_metric_alarm.alarms : name => sort(flatten([
      for query in alarm.metric_query : [for metric in query.metric : join(" ", concat(
        [metric.namespace, metric.metric_name, metric.stat],
        [for dimension in sort(keys(metric.dimensions)) : "${dimension}=${metric.dimensions[dimension]}"],
      ))]
      ])) if startswith(name, "intake") }) == jsonencode({
      intake-errors    = ["AWS/Lambda Errors Sum FunctionName=orderonce-dev-intake"]
      intake-failing   = ["AWS/ApiGateway 5xx Sum ApiId=orders", "AWS/ApiGateway Count Sum ApiId=orders"]
      intake-throttles = ["AWS/Lambda Throttles Sum FunctionName=orderonce-dev-intake"]
    })
    error_message = "alarms: metrics differ from this list"
  }

  assert {
    condition = (
      [for query in aws_cloudwatch_metric_alarm.alarms["intake-failing"].metric_query :
      query.expression if query.return_data] == ["100 * errors / requests"]
      && aws_cloudwatch_metric_alarm.alarms["intake-failing"].threshold == 25
      && aws_cloudwatch_metric_alarm.alarms["intake-failing"].datapoints_to_alarm == 2
    )
    error_message = "intake-failing: must be a share of the requests"
  }

  assert {
    condition = [for widget in jsondecode(aws_cloudwatch_dashboard.orders.dashboard_body).widgets :
      widget.properties.markdown if widget.type == "text"
      ] == [
      "## Are we charging?", "## Once?", "## Fast?", "## Published?", "## Accepted by HTTP?",
    ]
    error_message = "dashboard: must have a row for orders by HTTP"
  }
}

# Last, because pins.tf keeps the key.
run "the_function_may_use_the_key_of_queue_and_table" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.keys["intake"].policy).Statement :
      s.Condition.StringEquals["kms:ViaService"]
    ] == [["dynamodb.eu-west-1.amazonaws.com", "sqs.eu-west-1.amazonaws.com"]]
    error_message = "keys: must be usable through DynamoDB and SQS"
  }
}
