# The endpoint of Stripe's webhooks: an HTTP API with one route, which invokes
# functions/webhook. Its URL is public. The function accepts only requests that Stripe
# signed with the endpoint's secret (secrets.tf).

resource "aws_apigatewayv2_api" "webhook" {
  count = var.create_webhook ? 1 : 0

  name          = "${local.prefix}-webhook"
  description   = "Endpoint of Stripe's webhooks of ${local.prefix}"
  protocol_type = "HTTP"
}

resource "aws_apigatewayv2_integration" "webhook" {
  count = var.create_webhook ? 1 : 0

  api_id                 = aws_apigatewayv2_api.webhook[0].id
  integration_type       = "AWS_PROXY"
  integration_method     = "POST" # of the call to Lambda
  integration_uri        = aws_lambda_alias.live["webhook"].invoke_arn
  payload_format_version = "2.0" # adapters/apigateway reads no other
}

# The only route: the API answers 404 to every other method and path.
resource "aws_apigatewayv2_route" "webhook" {
  count = var.create_webhook ? 1 : 0

  api_id    = aws_apigatewayv2_api.webhook[0].id
  route_key = "POST /stripe/webhook"
  target    = "integrations/${aws_apigatewayv2_integration.webhook[0].id}"
}

resource "aws_apigatewayv2_stage" "webhook" {
  count = var.create_webhook ? 1 : 0

  api_id      = aws_apigatewayv2_api.webhook[0].id
  name        = "$default" # a URL without a stage
  auto_deploy = true

  # Anybody can send requests, so the API rejects a flood before it invokes the function.
  default_route_settings {
    throttling_burst_limit = var.webhook_burst_limit
    throttling_rate_limit  = var.webhook_rate_limit
  }

  # No body, header or query string: they may contain customer data or a signature.
  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.webhook_access[0].arn
    format = jsonencode({
      requestId          = "$context.requestId"
      time               = "$context.requestTime"
      ip                 = "$context.identity.sourceIp"
      route              = "$context.routeKey"
      status             = "$context.status"
      responseLatency    = "$context.responseLatency"
      integrationStatus  = "$context.integrationStatus"
      integrationLatency = "$context.integrationLatency"
      integrationError   = "$context.integrationErrorMessage"
    })
  }
}

# API Gateway adds the log group to a resource policy of CloudWatch Logs, whose size is
# limited. A statement for this prefix covers all such groups once the policy is long
# (CloudWatch Logs user guide, "Log group resource policy size limit considerations").
resource "aws_cloudwatch_log_group" "webhook_access" {
  count = var.create_webhook ? 1 : 0

  name              = "/aws/vendedlogs/${local.prefix}-webhook-access"
  retention_in_days = var.log_retention_days
}

# Only this route of this API may invoke the function.
resource "aws_lambda_permission" "webhook" {
  count = var.create_webhook ? 1 : 0

  statement_id  = "StripeWebhook"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_alias.live["webhook"].function_name
  qualifier     = aws_lambda_alias.live["webhook"].name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.webhook[0].execution_arn}/$default/POST/stripe/webhook"
}
